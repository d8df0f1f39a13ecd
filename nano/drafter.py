"""The DFlash drafter in PyTorch, small: what llama.cpp's `dflash` graph computes.

The target's features (the inputs of a few of its layers, side by side) are fused into one vector a token, and
give every drafter layer its keys and values of the past. A block is the last token and masks after it; it
attends to the past within the window and, both ways, to itself, and predicts all its masks at once
(arXiv 2602.06036). Embedding and head are the target's.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nano.model import Shape, rms_norm


@dataclass(frozen=True, slots=True)
class DraftShape:
    """Sizes of a drafter. `taps` are the target layers whose inputs it sees; `window` counts positions."""

    target: Shape
    taps: tuple[int, ...] = (1, 2, 4, 6, 7)
    layers: int = 5
    block: int = 16
    window: int = 512


def rope_halves(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """Rotate the two halves of x [T, H, D] against each other by positions [T]."""
    width = x.shape[-1]
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = positions.float()[:, None] * rates
    cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


GROUP = 4
"""Blocks that attend together: those near each other see nearly the same past."""


@dataclass(frozen=True, slots=True)
class View:
    """What the rows `first` to `last` - 1 see: of the past the positions `start` to `stop` - 1 and then their
    own group, both only where `mask` [rows, past + rows] says so."""

    first: int
    last: int
    start: int
    stop: int
    mask: Tensor


def view(anchors: Tensor, index: int, shape: DraftShape) -> View:
    """The view of the blocks that begin at `anchors`; `index` is the number of the first."""
    start = max(0, int(anchors[0]) - shape.window + 1)
    stop = int(anchors[-1])
    past = torch.arange(start, stop)
    owner = torch.arange(len(anchors)).repeat_interleave(shape.block)
    positions = (anchors[:, None] + torch.arange(shape.block)).flatten()
    sees = (past < anchors[owner][:, None]) & (positions[:, None] - past < shape.window)
    mask = torch.cat((sees, owner[:, None] == owner), 1)
    first = index * shape.block
    return View(first, first + len(owner), start, stop, mask)


def attend(q: Tensor, past: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor], views: list[View]) -> Tensor:
    """Attention of q [T, H, D] over keys and values [P, KV, D] of the past and [T, KV, D] of the blocks."""
    group = q.shape[1] // own[0].shape[1]
    outputs: list[Tensor] = []
    for v in views:
        keys, values = (
            torch.cat((before[v.start : v.stop], block[v.first : v.last]))
            .repeat_interleave(group, 1)
            .transpose(0, 1)
            for before, block in zip(past, own, strict=True)
        )
        queries = q[v.first : v.last].transpose(0, 1)
        seen = F.scaled_dot_product_attention(queries[None], keys[None], values[None], attn_mask=v.mask)
        outputs.append(seen[0].transpose(0, 1))
    return torch.cat(outputs)


class DraftLayer(nn.Module):
    """One layer of the drafter."""

    def __init__(self, shape: Shape, layers: int) -> None:
        super().__init__()
        self.shape = shape
        queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width

        def linear(inputs: int, outputs: int, scale: float = 1.0) -> nn.Linear:
            layer = nn.Linear(inputs, outputs, bias=False)
            nn.init.normal_(layer.weight, 0.0, scale / math.sqrt(inputs))
            return layer

        quiet = 1.0 / math.sqrt(2 * layers)
        self.q, self.k, self.v = (
            linear(shape.width, queries),
            linear(shape.width, keys),
            linear(shape.width, keys),
        )
        self.o = linear(queries, shape.width, quiet)
        self.ffn_up, self.ffn_gate = linear(shape.width, shape.ffn), linear(shape.width, shape.ffn)
        self.ffn_down = linear(shape.ffn, shape.width, quiet)
        self.attn_norm, self.ffn_norm = (
            nn.Parameter(torch.ones(shape.width)),
            nn.Parameter(torch.ones(shape.width)),
        )
        self.q_norm = nn.Parameter(torch.full((shape.head_width,), 2.0))
        self.k_norm = nn.Parameter(torch.ones(shape.head_width))

    def keys(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [T, KV, D] of x [T, width]."""
        shape = self.shape
        k = self.k(x).view(-1, shape.kv_heads, shape.head_width)
        k = rope_halves(rms_norm(k, self.k_norm, shape.eps), positions, shape.rope_base)
        return k, self.v(x).view(-1, shape.kv_heads, shape.head_width)

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor], positions: Tensor, views: list[View]) -> Tensor:
        """x [T, width] after the layer."""
        shape = self.shape
        h = rms_norm(x, self.attn_norm, shape.eps)
        q = rms_norm(self.q(h).view(-1, shape.heads, shape.head_width), self.q_norm, shape.eps)
        q = rope_halves(q, positions, shape.rope_base)
        k, v = self.keys(h, positions)
        x = x + self.o(attend(q, past, (k, v), views).flatten(1))
        h = rms_norm(x, self.ffn_norm, shape.eps)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Drafter(nn.Module):
    """Predicts whole blocks from the target's features."""

    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.target.width
        self.fuse = nn.Linear(len(shape.taps) * width, width, bias=False)
        nn.init.normal_(self.fuse.weight, 0.0, 1.0 / math.sqrt(len(shape.taps) * width))
        self.fuse_norm, self.norm = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.layers = nn.ModuleList([DraftLayer(shape.target, shape.layers) for _ in range(shape.layers)])

    def forward(self, features: Tensor, embedded: Tensor, anchors: Tensor) -> Tensor:
        """Final hidden states [N, block, width] of blocks that begin at positions `anchors` [N], ascending.

        `features` [T, taps * width] are the target's for positions 0..T-1; a block sees those before its
        anchor. `embedded` [N, block, width] are the target's embeddings of the blocks' tokens.
        """
        shape, target = self.shape, self.shape.target
        count, block = embedded.shape[:2]
        past = torch.arange(len(features))
        positions = (anchors[:, None] + torch.arange(block)).flatten()
        views = [view(anchors[at : at + GROUP], at, shape) for at in range(0, count, GROUP)]
        fused = rms_norm(self.fuse(features), self.fuse_norm, target.eps)
        x = embedded.flatten(0, 1)
        for layer in self.layers:
            x = layer(x, layer.keys(fused, past), positions, views)
        return rms_norm(x, self.norm, target.eps).view(count, block, -1)
