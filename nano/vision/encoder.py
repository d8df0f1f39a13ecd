"""Muse Glimmer's vision encoder in PyTorch, small: what llama.cpp's `muse-glimmer` projector graph computes.

A picture is cut into patches of 14 x 14 pixels. A learned position table is stretched to the picture's grid
and added; RoPE turns one half of every head by the column and the other by the row, both counted from one.
Every fourth block and the last see the whole picture; the others see windows as wide as the position table.
At the end two by two patches become one token through an adapter of three matrices.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PATCH = 14
MERGE = 2


@dataclass(frozen=True, slots=True)
class EyeShape:
    """Sizes of an encoder. `side` is the width of the position table and of a window, in patches."""

    out: int = 192
    width: int = 128
    heads: int = 4
    blocks: int = 6
    ffn: int = 384
    adapter: int = 384
    side: int = 56
    rope_base: float = 10_000.0
    eps: float = 1e-5
    taps: tuple[int, int] = (2, 4)
    """After so many blocks characters, and then tokens, are asked for while it is trained."""

    def is_global(self, block: int) -> bool:
        return (block + 1) % 4 == 0 or block == self.blocks - 1


def rope_tables(rows: int, columns: int, head: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines [rows * columns, head / 2] of a grid: those of the columns, then of the rows."""
    half = head // 2
    rates = base ** (-torch.arange(0, half, 2, dtype=torch.float32) / half)
    across = (torch.arange(columns) + 1.0)[:, None] * rates
    down = (torch.arange(rows) + 1.0)[:, None] * rates
    angles = torch.cat(
        (
            across[None].expand(rows, -1, -1),
            down[:, None].expand(-1, columns, -1),
        ),
        -1,
    ).reshape(rows * columns, half)
    return angles.cos(), angles.sin()


def turned(x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate interleaved pairs of x [B, heads, N, head]."""
    cos, sin = tables
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def window_mask(rows: int, columns: int, side: int) -> Tensor | None:
    """Which patches see each other in a windowed block [N, N]; None where one window holds all."""
    if rows <= side and columns <= side:
        return None
    number = (torch.arange(rows) // side)[:, None] * math.ceil(columns / side) + torch.arange(columns) // side
    number = number.flatten()
    return number[:, None] == number[None]


class Block(nn.Module):
    """One block: attention and feed-forward, each behind a layer norm."""

    def __init__(self, shape: EyeShape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.width
        self.ln1, self.ln2 = nn.LayerNorm(width, shape.eps), nn.LayerNorm(width, shape.eps)
        self.attn_q, self.attn_k = nn.Linear(width, width), nn.Linear(width, width)
        self.attn_v, self.attn_out = nn.Linear(width, width), nn.Linear(width, width)
        self.ffn_up, self.ffn_down = nn.Linear(width, shape.ffn), nn.Linear(shape.ffn, width)
        for layer, spread in (
            (self.attn_q, 1.0),
            (self.attn_k, 1.0),
            (self.attn_v, 1.0),
            (self.attn_out, 0.5),
            (self.ffn_up, 1.0),
            (self.ffn_down, 0.5),
        ):
            nn.init.normal_(layer.weight, 0.0, spread / math.sqrt(layer.in_features))
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """x [B, N, width] after the block; `mask` [N, N] is true where one patch sees another."""
        batch, count, width = x.shape
        heads = self.shape.heads
        three = (self.attn_q, self.attn_k, self.attn_v)
        weight, bias = (
            torch.cat([layer.weight for layer in three]),
            torch.cat([layer.bias for layer in three]),
        )
        fused = F.linear(self.ln1(x), weight, bias).view(batch, count, 3, heads, width // heads)
        q, k, v = fused.permute(2, 0, 3, 1, 4)
        q, k = turned(q, tables), turned(k, tables)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.attn_out(attended.transpose(1, 2).reshape(batch, count, width))
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ln2(x))))


class Eye(nn.Module):
    """The encoder."""

    def __init__(self, shape: EyeShape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.width
        self.patches = nn.Linear(3 * PATCH * PATCH, width, bias=False)
        self.positions = nn.Parameter(torch.randn(shape.side**2, width) * 0.02)
        self.pre_ln, self.post_ln = nn.LayerNorm(width, shape.eps), nn.LayerNorm(width, shape.eps)
        self.blocks = nn.ModuleList([Block(shape) for _ in range(shape.blocks)])
        self.mm = nn.ModuleList(
            [
                nn.Linear(MERGE * MERGE * width, shape.adapter, bias=False),
                nn.Linear(shape.adapter, shape.adapter, bias=False),
                nn.Linear(shape.adapter, shape.out, bias=False),
            ]
        )
        for layer in (self.patches, *self.mm):
            nn.init.normal_(layer.weight, 0.0, 1.0 / math.sqrt(layer.in_features))

    def forward(self, pixels: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Vectors [B, rows / 2 * columns / 2, out] of pixels [B, 3, H, W] in -1..1, H and W multiples of 28;
        and the patches [B, rows * columns, width] at the taps."""
        batch, _, high, wide = pixels.shape
        rows, columns = high // PATCH, wide // PATCH
        x = pixels.view(batch, 3, rows, PATCH, columns, PATCH).permute(0, 2, 4, 1, 3, 5)
        x = self.patches(x.reshape(batch, rows * columns, 3 * PATCH * PATCH)) + self._stretched(rows, columns)
        x = self.pre_ln(x)
        tables = rope_tables(rows, columns, self.shape.width // self.shape.heads, self.shape.rope_base)
        mask = window_mask(rows, columns, self.shape.side)
        tapped: list[Tensor] = []
        for index, block in enumerate(self.blocks):
            x = block(x, tables, None if self.shape.is_global(index) else mask)
            if index + 1 in self.shape.taps:
                tapped.append(x)
        return self._merged(self.post_ln(x), rows, columns), tapped

    def _stretched(self, rows: int, columns: int) -> Tensor:
        side, width = self.shape.side, self.shape.width
        table = self.positions.view(1, side, side, width).permute(0, 3, 1, 2)
        if (rows, columns) != (side, side):
            table = F.interpolate(table, size=(rows, columns), mode="bilinear", align_corners=False)
        return table.permute(0, 2, 3, 1).reshape(1, rows * columns, width)

    def _merged(self, x: Tensor, rows: int, columns: int) -> Tensor:
        """Four neighbours as one row, channel by channel, through the adapter."""
        batch, _, width = x.shape
        x = x.view(batch, rows // MERGE, MERGE, columns // MERGE, MERGE, width).permute(0, 1, 3, 5, 2, 4)
        x = x.reshape(batch, (rows // MERGE) * (columns // MERGE), MERGE * MERGE * width)
        return self.mm[2](F.gelu(self.mm[1](F.gelu(self.mm[0](x)))))
