"""Draw the next token from the model's scores, with llama.cpp's sampler chain."""

import math
import secrets

import llama_cpp.llama_cpp as native
import numpy as np
import numpy.typing as npt

from engine.cache import Cache
from engine.calls.constraint import CallConstraint
from engine.errors import EngineError
from engine.protocol import Sampling

_MIN_KEEP = 1
_RANDOM_SEED = 0xFFFFFFFF
"""The seed that llama.cpp takes for "any"; it is never handed over."""


class Sampler:
    """Top-k, top-p, temperature, then a draw; at temperature 0 the best token.

    The same seed and the same scores give the same tokens. Close it: the chain is native memory.
    """

    def __init__(self, sampling: Sampling, constraint: CallConstraint | None = None) -> None:
        """`constraint` keeps calls well formed. Raises EngineError for values no distribution can have."""
        _check(sampling)
        self._constraint = constraint
        self._is_open = True
        self._chain: native.llama_sampler_p | None = None
        if sampling.temperature == 0.0:
            return
        self._chain = native.llama_sampler_chain_init(native.llama_sampler_chain_default_params())
        if sampling.top_k > 0:
            self._add(native.llama_sampler_init_top_k(sampling.top_k))
        if sampling.top_p < 1.0:
            self._add(native.llama_sampler_init_top_p(sampling.top_p, _MIN_KEEP))
        self._add(native.llama_sampler_init_temp(sampling.temperature))
        self._add(native.llama_sampler_init_dist(_seed(sampling.seed)))

    def sample(self, cache: Cache, row: int) -> int:
        """A token for a row that was scored, -1 for the last. Raises EngineError where scores are no numbers.

        Greedy drawing looks for the largest score itself: of 200,000, twenty times faster than the chain.
        """
        if not self._is_open:
            raise EngineError("The sampler is closed.")
        scores = cache.scores(row)
        token = self._draw(cache, row, scores)
        if self._constraint is not None:
            if not self._constraint.allows(token):
                self._constraint.mask(scores)
                token = self._draw(cache, row, scores)
            self._constraint.accept(token)
        return token

    def force(self, token: int) -> None:
        """A token is written without being drawn."""
        if self._constraint is not None:
            self._constraint.accept(token)

    def _draw(self, cache: Cache, row: int, scores: npt.NDArray[np.float32]) -> int:
        best = int(scores.argmax())
        if not math.isfinite(scores[best]):
            raise EngineError(
                "The model's scores are not numbers.",
                "Its weights are damaged, or the computation overflowed.",
                "Download the model again, or run it without the GPU.",
            )
        if self._chain is None:
            return best
        return native.llama_sampler_sample(self._chain, cache.context.handle, row)

    def close(self) -> None:
        """Free the chain and its parts."""
        if self._is_open:
            self._is_open = False
            if self._chain is not None:
                native.llama_sampler_free(self._chain)

    def _add(self, part: "native.llama_sampler_p") -> None:
        if not part or self._chain is None:
            raise EngineError("The sampler could not be set up.", "There was not enough memory.")
        native.llama_sampler_chain_add(self._chain, part)


def _check(sampling: Sampling) -> None:
    if not (math.isfinite(sampling.temperature) and sampling.temperature >= 0):
        raise EngineError(f"The temperature {sampling.temperature} is impossible.", "", "Use 0 or more.")
    if not 0 < sampling.top_p <= 1:
        raise EngineError(f"The top_p {sampling.top_p} is impossible.", "", "Use more than 0, at most 1.")
    if not 0 <= sampling.top_k < 1 << 31:
        raise EngineError(f"The top_k {sampling.top_k} is impossible.", "", "Use 0 (all tokens) or more.")


def _seed(wanted: int | None) -> int:
    seed = (secrets.randbits(32) if wanted is None else wanted) & 0xFFFFFFFF
    return seed - 1 if seed == _RANDOM_SEED else seed
