"""Muse Glimmer's architecture in PyTorch, small: what llama.cpp's `muse-glimmer` graph computes.

Layers come in fours: three local ones (causal window, RoPE on interleaved pairs) and a global one without any
position encoding. Around them: an RMS norm on the embeddings, QK-norm, a sigmoid gate on the attention's
output, RMS norms before and after each half of a layer (the later ones with eps 1e-8), a scaled output head
with a tanh softcap.

Training shares one system block among the rows of a batch: its keys and values are computed once, and every
row of `ids` [B, T] attends to them.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SHARPNESS = 2.0
"""First gain of the query norm. With normed queries and keys it bounds how sharp attention can be: at 1 the
largest score is sqrt(head_width), too little to single out one of a thousand tokens."""
BLOCK = 128
"""Queries an attention block."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model. `window` counts the token itself and what lies before it."""

    vocab: int
    width: int = 192
    layers: int = 8
    heads: int = 4
    kv_heads: int = 2
    head_width: int = 48
    ffn: int = 512
    window: int = 256
    rope_base: float = 10_000.0
    softcap: float = 20.0
    logit_scale: float = 0.19612
    eps: float = 1e-5
    context: int = 16_384

    def is_local(self, layer: int) -> bool:
        return (layer + 1) % 4 != 0


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps), times `weight` over the last dimension."""
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def rope(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """Rotate interleaved pairs of x [B, T, H, D] by positions [T]."""
    width = x.shape[-1]
    rates = base ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = positions.float()[:, None] * rates
    cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Layer(nn.Module):
    """One transformer layer, local or global."""

    def __init__(self, shape: Shape, local: bool) -> None:
        super().__init__()
        self.shape, self.local = shape, local
        queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width

        def linear(inputs: int, outputs: int) -> nn.Linear:
            layer = nn.Linear(inputs, outputs, bias=False)
            nn.init.normal_(layer.weight, 0.0, 1.0 / math.sqrt(inputs))
            return layer

        self.q, self.k, self.v = (
            linear(shape.width, queries),
            linear(shape.width, keys),
            linear(shape.width, keys),
        )
        self.gate, self.o = linear(shape.width, queries), linear(queries, shape.width)
        self.ffn_up, self.ffn_gate = linear(shape.width, shape.ffn), linear(shape.width, shape.ffn)
        self.ffn_down = linear(shape.ffn, shape.width)
        self.attn_norm, self.ffn_norm = (
            nn.Parameter(torch.ones(shape.width)),
            nn.Parameter(torch.ones(shape.width)),
        )
        after = 1.0 / math.sqrt(2 * shape.layers)
        self.attn_post = nn.Parameter(torch.full((shape.width,), after))
        self.ffn_post = nn.Parameter(torch.full((shape.width,), after))
        self.q_norm = nn.Parameter(torch.full((shape.head_width,), SHARPNESS))
        self.k_norm = nn.Parameter(torch.ones(shape.head_width))

    def project(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries [B, H, T, D], keys and values [B, KV, T, D], gate [B, T, H*D] of x [B, T, width]."""
        shape, (rows, length, _) = self.shape, x.shape
        h = rms_norm(x, self.attn_norm, shape.eps)
        fused = torch.cat((self.q.weight, self.k.weight, self.v.weight, self.gate.weight))
        queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
        q, k, v, gate = F.linear(h, fused).split((queries, keys, keys, queries), -1)
        q = rms_norm(q.reshape(rows, length, shape.heads, shape.head_width), self.q_norm, shape.eps)
        k = rms_norm(k.reshape(rows, length, shape.kv_heads, shape.head_width), self.k_norm, shape.eps)
        v = v.reshape(rows, length, shape.kv_heads, shape.head_width)
        if self.local:
            q, k = rope(q, positions, shape.rope_base), rope(k, positions, shape.rope_base)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), torch.sigmoid(gate)

    def finish(self, x: Tensor, attended: Tensor, gate: Tensor) -> Tensor:
        """Gate, output projection, feed-forward, both with their residuals. `attended` is [B, H, T, D]."""
        attended = attended.transpose(1, 2).flatten(2) * gate
        x = x + rms_norm(self.o(attended), self.attn_post, 1e-8)
        h = rms_norm(x, self.ffn_norm, self.shape.eps)
        gate, up = F.linear(h, torch.cat((self.ffn_gate.weight, self.ffn_up.weight))).chunk(2, -1)
        return x + rms_norm(self.ffn_down(F.silu(gate) * up), self.ffn_post, 1e-8)


def attend(q: Tensor, k: Tensor, v: Tensor, window: int | None) -> Tensor:
    """Causal attention in blocks of queries, each over the keys it can see and no others.

    q is [B, H, T, D]; k and v are [B, H, before + T, D], where the first `before` lie ahead of q. `window`
    counts the token itself; None sees everything before.
    """
    length, before = q.shape[2], k.shape[2] - q.shape[2]
    outputs: list[Tensor] = []
    for start in range(0, length, BLOCK):
        stop = min(start + BLOCK, length)
        first = 0 if window is None else max(0, before + start - window + 1)
        last = before + stop
        rows = torch.arange(before + start, last)[:, None]
        columns = torch.arange(first, last)[None]
        mask = columns <= rows
        if window is not None:
            mask &= rows - columns < window
        keys, values = k[:, :, first:last], v[:, :, first:last]
        outputs.append(F.scaled_dot_product_attention(q[:, :, start:stop], keys, values, attn_mask=mask))
    return torch.cat(outputs, 2)


class Glimmer(nn.Module):
    """The language model."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocab, shape.width)
        self.layers = nn.ModuleList([Layer(shape, shape.is_local(i)) for i in range(shape.layers)])
        self.norm = nn.Parameter(torch.ones(shape.width))
        self.head = nn.Linear(shape.width, shape.vocab, bias=False)
        nn.init.normal_(self.embedding.weight, 0.0, 1.0)
        nn.init.normal_(self.head.weight, 0.0, 1.0 / math.sqrt(shape.width))

    @torch.no_grad()
    def remembered(self, prefix: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Every layer's keys and values [1, KV, P, D] of prefix [P]; it is constant and gets no gradient."""
        shape = self.shape
        x = rms_norm(self.embedding(prefix[None]), None, shape.eps)
        places = torch.arange(len(prefix))
        kept: list[tuple[Tensor, Tensor]] = []
        for layer in self.layers:
            q, k, v, gate = layer.project(x, places)
            kept.append((k, v))
            group = shape.heads // shape.kv_heads
            window = shape.window if layer.local else None
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            x = layer.finish(x, attend(q, k, v, window), gate)
        return kept

    def hidden(
        self, ahead: list[tuple[Tensor, Tensor]], ids: Tensor, taps: tuple[int, ...] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """Final hidden states [B, T, width] of ids [B, T] after what `remembered` gave; the inputs of layers
        `taps`."""
        shape, before = self.shape, ahead[0][0].shape[2]
        x = rms_norm(self.embedding(ids), None, shape.eps)
        rows, length = ids.shape
        group = shape.heads // shape.kv_heads
        places = torch.arange(before, before + length)
        tapped: list[Tensor] = []
        for index, (layer, (pk, pv)) in enumerate(zip(self.layers, ahead, strict=True)):
            if index in taps:
                tapped.append(x)
            window = shape.window if layer.local else None
            keep = min(before, shape.window - 1) if layer.local else before
            q, k, v, gate = layer.project(x, places)
            k = torch.cat((pk[:, :, before - keep :].expand(rows, -1, -1, -1), k), 2)
            v = torch.cat((pv[:, :, before - keep :].expand(rows, -1, -1, -1), v), 2)
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            x = layer.finish(x, attend(q, k, v, window), gate)
        return rms_norm(x, self.norm, shape.eps), tapped

    def logits(self, hidden: Tensor) -> Tensor:
        """Softcapped logits over the vocabulary."""
        scaled = self.head(hidden) * self.shape.logit_scale
        return torch.tanh(scaled / self.shape.softcap) * self.shape.softcap
