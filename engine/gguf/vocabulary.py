"""The vocabulary of a GGUF file, checked: byte-level, whole, and without a token twice."""

from collections.abc import Iterator

from engine.gguf.file import ValueType
from engine.gguf.keys import CHOOSE_GLIMMER, Keys

MAX_VOCABULARY = 1 << 20


def read_vocabulary(keys: Keys) -> tuple[str, ...]:
    """The token texts, in id order. Raises ModelError for a vocabulary that loses or mixes up text."""
    if keys.required("tokenizer.ggml.model", ValueType.STRING) != "gpt2":
        keys.fail("Its tokenizer is not byte-level, as Muse Glimmer's is.", CHOOSE_GLIMMER)
    tokens = tuple(map(str, keys.array("tokenizer.ggml.tokens", ValueType.STRING)))
    types = keys.array("tokenizer.ggml.token_type", ValueType.INT32)
    merges = keys.array("tokenizer.ggml.merges", ValueType.STRING)
    if not 256 <= len(tokens) <= MAX_VOCABULARY:
        keys.fail(f"Its vocabulary has {len(tokens)} tokens, which is impossible.")
    if len(types) != len(tokens):
        keys.fail(f"It has {len(tokens)} tokens but {len(types)} token types, so it is damaged.")
    if len({text or f"[EMPTY_{number}]" for number, text in enumerate(tokens)}) != len(tokens):
        keys.fail("A token is in its vocabulary twice, so it is damaged.")
    keys.equal("vocab_size", len(tokens))
    known = set(tokens)
    if missing := [character for character in _byte_alphabet() if character not in known]:
        keys.fail(
            f"Its vocabulary lacks {len(missing)} of the single bytes, so some text would be lost unread."
        )
    if lost := next((merge for merge in map(str, merges) if merge.replace(" ", "", 1) not in known), None):
        keys.fail(f"Its vocabulary lacks the token of the merge {lost!r}, so some text would be lost unread.")
    return tokens


def _byte_alphabet() -> Iterator[str]:
    """The character that stands for each byte that UTF-8 text can hold, in a byte-level vocabulary."""
    spare = 256
    for byte in range(256):
        if byte < 33 or 127 <= byte < 161 or byte == 173:
            character, spare = chr(spare), spare + 1
        else:
            character = chr(byte)
        if byte not in (0xC0, 0xC1) and byte < 0xF5:
            yield character
