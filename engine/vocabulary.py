"""Text to token ids and back."""

import ctypes
import re
from collections.abc import Mapping

import llama_cpp.llama_cpp as native

from engine.errors import EngineError

_READ_AS_MARKERS = ("<|start|>", "<|message|>", "<|channel|>", "<|constrain|>")
"""Texts that llama.cpp takes for special tokens even where special tokens are not to be parsed."""


class Vocabulary:
    """A model's tokens. Special tokens are known by their text, `<|eot|>` and the like."""

    def __init__(self, handle: native.llama_vocab_p, size: int, special_ids: Mapping[str, int]) -> None:
        self._vocabulary: native.llama_vocab_p | None = handle
        self.size = size
        self.special_ids = special_ids
        self._specials = frozenset(special_ids.values())
        self._pieces: dict[int, bytes] = {}
        user_defined = native.LLAMA_TOKEN_ATTR_USER_DEFINED
        taken = {
            text
            for text, token in special_ids.items()
            if native.llama_vocab_get_attr(handle, token) & user_defined
        }
        cut = sorted({*taken, *_READ_AS_MARKERS}, key=len, reverse=True)
        self._cut = re.compile(f"(?={'|'.join(map(re.escape, cut))})")

    def special(self, text: str) -> int | None:
        """The id of a special token, or None where the vocabulary lacks it."""
        return self.special_ids.get(text)

    def is_special(self, token: int) -> bool:
        return token in self._specials

    def tokenize(self, text: str) -> list[int]:
        """Ordinary text as ids. Never a special token, whatever the text spells.

        The library takes a few special tokens for special even when told to parse none, so a text that
        spells one of those is handed over in two parts. Raises EngineError if one came through anyway.
        """
        tokens: list[int] = []
        for part in self._parts(text):
            tokens += self._tokenize(part.encode("utf-8", "replace"), parse_special=False)
        if not self._specials.isdisjoint(tokens):
            raise EngineError(
                "Some text could not be handed to the model safely.",
                "The tokenizer read a control token out of ordinary text.",
                "Report this together with the text.",
            )
        return tokens

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for; they may be part of a character. Empty for a special token."""
        if token in self._specials:
            return b""
        if (known := self._pieces.get(token)) is not None:
            return known
        length = 64
        while True:
            buffer = ctypes.create_string_buffer(length)
            written = native.llama_token_to_piece(self.handle, token, buffer, length, 0, True)
            if written >= 0:
                self._pieces[token] = buffer.raw[:written]
                return self._pieces[token]
            length = -written

    def close(self) -> None:
        """Its model is being freed, and the native vocabulary with it."""
        self._vocabulary = None

    @property
    def handle(self) -> native.llama_vocab_p:
        """The native vocabulary. Raises EngineError once its model is closed."""
        if self._vocabulary is None:
            raise EngineError("The model is closed.")
        return self._vocabulary

    def _parts(self, text: str) -> list[str]:
        if "<|" not in text:
            return [text]
        parts: list[str] = []
        start = 0
        for match in self._cut.finditer(text):
            end = match.start() + len("<|")
            parts.append(text[start:end])
            start = end
        parts.append(text[start:])
        return parts

    def _tokenize(self, raw: bytes, *, parse_special: bool) -> list[int]:
        room = len(raw) + 8
        while True:
            tokens = (native.llama_token * room)()
            count = native.llama_tokenize(self.handle, raw, len(raw), tokens, room, False, parse_special)
            if count >= 0:
                return tokens[:count]
            if count == -(1 << 31):
                raise EngineError("The text is too long to be read.", "", "Shorten it.")
            room = -count
