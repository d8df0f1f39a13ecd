"""The inputs of some of a model's layers, which the library keeps at every decode when it is asked to.

The library exports the two functions for this under their C++ names only, so they are looked for by name; a
build without them can do all but draft.
"""

import ctypes
from functools import cache
from typing import Any

import llama_cpp.llama_cpp as native
import numpy as np
import numpy.typing as npt

from engine.batch import floats
from engine.context import Context
from engine.errors import EngineError

SYMBOLS = (
    "_Z30llama_set_embeddings_layer_inpP13llama_contextjb",
    "_Z30llama_get_embeddings_layer_inpP13llama_contextj",
)


@cache
def missing_symbols() -> tuple[str, ...]:
    """Those of SYMBOLS that this build of the library lacks."""
    library: Any = vars(native)["_lib"]
    return tuple(name for name in SYMBOLS if not hasattr(library, name))


class LayerInputs:
    """Keeps the inputs of `layers`, `width` numbers a token each, at every decode of a context."""

    def __init__(self, context: Context, layers: tuple[int, ...], width: int) -> None:
        """Raises EngineError where the library lacks the functions."""
        if missing := missing_symbols():
            raise EngineError(
                "This build of llama.cpp cannot hand out what the drafter needs.",
                f"It lacks {', '.join(missing)}.",
                "Install llama-cpp-python 0.3.36.",
            )
        library: Any = vars(native)["_lib"]
        set_kept, self._get = (getattr(library, name) for name in SYMBOLS)
        set_kept.argtypes, set_kept.restype = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_bool), None
        self._get.argtypes, self._get.restype = (ctypes.c_void_p, ctypes.c_uint32), ctypes.c_void_p
        self._context, self._layers, self._width = context, layers, width
        for layer in layers:
            set_kept(context.handle, layer, True)

    def rows(self, taken: npt.NDArray[np.float32]) -> None:
        """Copy the first rows of the last decode into `taken` [count, layers * width]."""
        width, count = self._width, len(taken)
        for number, layer in enumerate(self._layers):
            address = self._get(self._context.handle, layer)
            if not address:
                raise EngineError("The model did not keep what the drafter needs.")
            kept = floats(address, self._context.batch_size * width).reshape(-1, width)
            taken[:, number * width : (number + 1) * width] = kept[:count]
