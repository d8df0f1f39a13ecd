"""Corpus lines as id arrays, grouped by length into batches of about the same number of tokens."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nano.tokenizer import Encoder

FOREIGN = 0.1
"""Loss weight of text the model reads: little, but it teaches copying early."""
MENDED = ('<atem:parameter name="new">', "</atem:parameter>")
MENDED_WEIGHT = 4.0
"""Loss weight of the new text of an edit: few tokens, and the only ones that take thought."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Ids of a conversation (without its system block), loss weight of each, and message number of each.

    `turn` is -1 for what the model reads and the number of the assistant message for what it must write.
    """

    ids: np.ndarray
    weights: np.ndarray
    turn: np.ndarray


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded [B, T] arrays; padding has weight 0 and turn -1."""

    ids: Tensor
    weights: Tensor
    turn: Tensor


def encode_sample(line: str, encoder: Encoder) -> Sample:
    """A corpus line as ids and weights."""
    ids: list[int] = []
    weights: list[float] = []
    turn: list[int] = []
    for number, (weight, pieces) in enumerate(json.loads(line)):
        part, mended = encoder.encode(pieces), encoder.within(pieces, MENDED)
        written = str(pieces[1]).startswith("assistant")
        ids += part
        if written:
            weights += [0.0, 0.0, *(weight * (MENDED_WEIGHT if inside else 1.0) for inside in mended[2:])]
            turn += [-1, -1, *[number if weight else -1] * (len(part) - 2)]
        else:
            weights += [FOREIGN] * len(part)
            turn += [-1] * len(part)
    return Sample(np.array(ids, np.int32), np.array(weights, np.float32), np.array(turn, np.int32))


class Corpus:
    """All samples of the shards in a folder; `refresh` takes up lines written since."""

    def __init__(self, paths: list[Path], encoder: Encoder, longest: int) -> None:
        self._offsets = dict.fromkeys(paths, 0)
        self._encoder, self._longest = encoder, longest
        self.samples: list[Sample] = []
        self.refresh()

    def refresh(self) -> int:
        """Read what is new; returns how many samples there are."""
        for path, offset in self._offsets.items():
            with path.open("rb") as source:
                source.seek(offset)
                for line in source:
                    if not line.endswith(b"\n"):
                        break
                    offset += len(line)
                    sample = encode_sample(line.decode(), self._encoder)
                    if len(sample.ids) <= self._longest:
                        self.samples.append(sample)
            self._offsets[path] = offset
        return len(self.samples)

    def epoch(self, rng: random.Random, tokens: int, pad: int) -> Iterator[Batch]:
        """Every sample once, in batches of about `tokens`, alike in length."""
        order = sorted(
            range(len(self.samples)), key=lambda i: len(self.samples[i].ids) * rng.uniform(0.9, 1.1)
        )
        groups: list[list[int]] = [[]]
        for index in order:
            if groups[-1] and (len(groups[-1]) + 1) * len(self.samples[index].ids) > tokens:
                groups.append([])
            groups[-1].append(index)
        rng.shuffle(groups)
        for group in groups:
            yield self.batch(group, pad)

    def batch(self, group: list[int], pad: int) -> Batch:
        """The samples of `group`, padded to the longest."""
        chosen = [self.samples[i] for i in group]
        length = max(len(sample.ids) for sample in chosen)
        ids = torch.full((len(chosen), length), pad, dtype=torch.long)
        weights = torch.zeros(len(chosen), length)
        turn = torch.full((len(chosen), length), -1, dtype=torch.long)
        for row, sample in enumerate(chosen):
            end = len(sample.ids)
            ids[row, :end] = torch.from_numpy(sample.ids.astype(np.int64))
            weights[row, :end] = torch.from_numpy(sample.weights)
            turn[row, :end] = torch.from_numpy(sample.turn.astype(np.int64))
        return Batch(ids, weights, turn)
