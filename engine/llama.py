"""A model's weights in memory, through llama.cpp."""

import os
from collections.abc import Callable
from pathlib import Path

import llama_cpp.llama_cpp as native

from engine.errors import EngineError, ModelError
from engine.gguf.model import ModelMetadata
from engine.native_log import Library, see_log
from engine.vocabulary import Vocabulary


def _always() -> bool:
    return True


class Weights:
    """The weights of one file, of a model or of a drafter. The file must have been checked before."""

    def __init__(
        self,
        path: Path,
        window: int,
        gpu_layers: int,
        log_file: Path | None,
        goes_on: Callable[[], bool] = _always,
    ) -> None:
        """Load them. `window` is the local layers' reach in tokens; `gpu_layers` -1 puts all layers on the
        GPU where there is one. `goes_on` is asked again and again; where it says no, loading is broken off.
        Raises ModelError."""
        Library.prepare(log_file)
        params = native.llama_model_default_params()
        params.n_gpu_layers = gpu_layers

        def ask(_share: float, _data: object) -> bool:
            return goes_on()

        asked = native.llama_progress_callback(ask)
        params.progress_callback = asked
        handle = native.llama_model_load_from_file(os.fsencode(path), params)
        if not handle:
            Library.leave(log_file)
            if not goes_on():
                raise ModelError(f"Loading {path.name} was broken off: the engine is being closed.")
            raise ModelError(
                f"{path.name} could not be loaded.",
                "llama.cpp refused it, or there was not enough memory.",
                see_log(log_file),
            )
        self._handle: native.llama_model_p | None = handle
        self._log_file = log_file
        self.window = window

    @property
    def handle(self) -> native.llama_model_p:
        """The native model. Raises EngineError once it is closed."""
        if self._handle is None:
            raise EngineError("The model is closed.")
        return self._handle

    def close(self) -> None:
        """Free the weights. Contexts must be closed first."""
        if self._handle is None:
            return
        native.llama_model_free(self._handle)
        self._handle = None
        Library.leave(self._log_file)


class Model(Weights):
    """A language model: its weights and its vocabulary."""

    def __init__(
        self,
        metadata: ModelMetadata,
        gpu_layers: int,
        log_file: Path | None,
        goes_on: Callable[[], bool] = _always,
    ) -> None:
        """Load a file that `engine.gguf.model` has checked. Raises ModelError."""
        super().__init__(metadata.path, metadata.shape.window, gpu_layers, log_file, goes_on)
        self.metadata = metadata
        vocabulary = native.llama_model_get_vocab(self.handle)
        size = native.llama_vocab_n_tokens(vocabulary) if vocabulary else 0
        if not vocabulary or size != metadata.vocabulary_size:
            super().close()
            raise ModelError(
                f"{metadata.path.name} could not be loaded.",
                f"Its vocabulary has {size} tokens where its file lists {metadata.vocabulary_size}.",
                "Download it again.",
            )
        self.vocabulary = Vocabulary(vocabulary, size, metadata.special_ids)

    def close(self) -> None:
        """Free the weights. Contexts must be closed first."""
        self.vocabulary.close()
        super().close()
