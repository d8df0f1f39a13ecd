"""Practice in copying: random tokens, then spans of them again, further back than the local window reaches.

Most of the work of mending a bug is copying names and lines. In conversations that skill comes late; on
random tokens nothing else lowers the loss, so the global layers learn it in a few hundred steps.
"""

import torch
from torch import Tensor

from nano.batches import Batch

FIRST_TOKEN = 300
"""Tokens below are markers and single bytes."""


def copying(vocab: int, rows: int = 5, length: int = 400, spans: int = 16, longest: int = 24) -> Batch:
    """A batch [rows, ...]: `length` random tokens, then `spans` pieces of 4 to `longest` of them.

    Only what follows from the beginning of a piece has a loss: its first token cannot be known.
    """
    ids: list[Tensor] = []
    weights: list[Tensor] = []
    for _ in range(rows):
        source = torch.randint(FIRST_TOKEN, vocab, (length,))
        parts, marks = [source], [torch.zeros(length)]
        for _ in range(spans):
            size = int(torch.randint(4, longest + 1, ()))
            start = int(torch.randint(0, length - size, ()))
            parts.append(source[start : start + size])
            mark = torch.ones(size)
            mark[0] = 0.0
            marks.append(mark)
        ids.append(torch.cat(parts))
        weights.append(torch.cat(marks))
    shortest = min(len(row) for row in ids)
    stacked = torch.stack([row[:shortest] for row in ids])
    return Batch(stacked, torch.stack([row[:shortest] for row in weights]), torch.full_like(stacked, -1))
