"""The byte-level BPE of the demonstration model, trained on its own corpus.

llama.cpp splits text by the pre-tokenizer named in the GGUF; "qwen2" takes one digit at a time and a word
with the character before it, which keeps numbers and identifiers easy to copy. The expression is the same.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PRE_TOKENIZER = "qwen2"
SPLIT = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIALS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start|>",
    "<|message|>",
    "<|eom|>",
    "<|eot|>",
    "<|finetune_right_pad|>",
    "<|image_start|>",
    "<|image_end|>",
    "<|patch|>",
    "<|video|>",
    "<|mask|>",
)
PAD = "<|finetune_right_pad|>"
MASK = "<|mask|>"


def with_pieces(tokenizer: Tokenizer) -> Tokenizer:
    """Make a BPE split text as llama.cpp's "qwen2" does, over bytes."""
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train(texts: Iterable[str], size: int) -> Tokenizer:
    """Train on plain text pieces (no markers in them) to `size` tokens, specials and 256 bytes included."""
    tokenizer = with_pieces(Tokenizer(models.BPE()))
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


class Encoder:
    """Turns stored pieces into ids as the engine does: markers by id, everything else as plain text."""

    def __init__(self, path: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(path))
        self.specials = {text: self.tokenizer.token_to_id(text) for text in SPECIALS}
        self.tokenizer.encode_special_tokens = True
        self.size = self.tokenizer.get_vocab_size()

    def encode(self, pieces: Iterable[object]) -> list[int]:
        """Ids of pieces: a str is plain text, {"marker": text} a marker."""
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, dict):
                ids.append(self.specials[piece["marker"]])
            else:
                ids += self.tokenizer.encode(str(piece), add_special_tokens=False).ids
        return ids

    def within(self, pieces: Iterable[object], bounds: tuple[str, str]) -> list[bool]:
        """For each id that `encode` gives: whether it lies between the two bounds, in one plain piece."""
        inside: list[bool] = []
        for piece in pieces:
            if isinstance(piece, dict):
                inside.append(False)
                continue
            text = str(piece)
            _, opened, rest = text.partition(bounds[0])
            start = len(text) - len(rest) if opened else len(text)
            end = text.rfind(bounds[1], start)
            spans = self.tokenizer.encode(text, add_special_tokens=False).offsets
            inside += [start <= first and last <= end for first, last in spans]
        return inside


def plain_texts(lines: Iterable[str]) -> Iterator[str]:
    """The plain pieces of corpus lines."""
    for line in lines:
        for _, pieces in json.loads(line):
            yield from (piece for piece in pieces if isinstance(piece, str))
