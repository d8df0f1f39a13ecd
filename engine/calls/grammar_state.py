"""One grammar at work in llama.cpp: which ordinary tokens may come next, and whether it may end here."""

import ctypes

import llama_cpp.llama_cpp as native
import numpy as np
import numpy.typing as npt

from engine.chat_format import Marker
from engine.errors import EngineError
from engine.vocabulary import Vocabulary

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""The layout of `llama_token_data`."""


class GrammarState:
    """The state of a grammar after the tokens it took. Special tokens are none of its business.

    llama.cpp aborts the process for a token that does not fit, so `accept` wants one that is allowed.
    """

    def __init__(self, vocabulary: Vocabulary, grammar: str) -> None:
        """Raises EngineError for a grammar that llama.cpp refuses."""
        self._vocabulary = vocabulary
        self._handle = vocabulary.handle
        self._end = _end_token(vocabulary, self._handle)
        sampler = native.llama_sampler_init_grammar(self._handle, grammar.encode(), b"root")
        if not sampler:
            raise EngineError(
                "A tool's calls could not be constrained.",
                "llama.cpp refused the grammar made of its schema.",
                "Report this together with the tool's schema.",
            )
        self._sampler: native.llama_sampler_p | None = sampler
        self._single = np.zeros(1, _CANDIDATE)
        self._single_array = _candidates(self._single)
        self._is_complete: bool | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the grammar is fulfilled by what was taken; more may still be allowed."""
        if self._is_complete is None:
            self._is_complete = self._is_let_through(self._end)
        return self._is_complete

    def allows(self, token: int) -> bool:
        """Whether an ordinary token may come next."""
        if self._vocabulary.is_special(token) or not 0 <= token < self._vocabulary.size:
            return False
        return self._is_let_through(token) and not self._ends_all(token)

    def allowed(self, tokens: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Those of many ordinary tokens that may come next; much faster than one by one."""
        ordinary = tokens[np.isin(tokens, list(self._vocabulary.special_ids.values()), invert=True)]
        candidates = np.zeros(len(ordinary), _CANDIDATE)
        candidates["id"] = ordinary
        native.llama_sampler_apply(self._open(), _candidates(candidates))
        kept = ordinary[candidates["logit"] == 0]
        if self.is_complete:
            kept = kept[[not self._ends_all(token) for token in kept.tolist()]]
        return kept

    def accept(self, token: int) -> None:
        """Take a token that is allowed."""
        native.llama_sampler_accept(self._open(), token)
        self._is_complete = None

    def restart(self) -> None:
        """Go back to the beginning."""
        native.llama_sampler_reset(self._open())
        self._is_complete = None

    def close(self) -> None:
        """Free the native grammar."""
        if self._sampler is not None:
            native.llama_sampler_free(self._sampler)
            self._sampler = None

    def _is_let_through(self, token: int) -> bool:
        self._single[0] = (token, 0.0, 0.0)
        native.llama_sampler_apply(self._open(), self._single_array)
        return bool(self._single["logit"][0] == 0)

    def _ends_all(self, token: int) -> bool:
        """Whether llama.cpp takes a token for an end, whatever its text."""
        return self.is_complete and native.llama_vocab_is_eog(self._handle, token)

    def _open(self) -> "native.llama_sampler_p":
        if self._sampler is None:
            raise EngineError("The grammar is closed.")
        return self._sampler


def _candidates(data: npt.NDArray[np.void]) -> "ctypes.Array[native.llama_token_data_array]":
    """A native view of candidates, which must live at least as long."""
    pointer = data.ctypes.data_as(native.llama_token_data_p)
    return (native.llama_token_data_array * 1)((pointer, len(data), -1, False))


def _end_token(vocabulary: Vocabulary, handle: native.llama_vocab_p) -> int:
    """A token that llama.cpp lets through only where a grammar is fulfilled."""
    for marker in (Marker.EOT, Marker.END_OF_TEXT):
        token = vocabulary.special(marker.value)
        if token is not None and native.llama_vocab_is_eog(handle, token):
            return token
    raise EngineError("The model's vocabulary has no end of turn.", "", "Choose another model file.")
