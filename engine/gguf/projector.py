"""What a plan must know of a vision projector: how large it is. Whether it is sound is checked on loading."""

from pathlib import Path

from engine.buffer_sizes import Projector
from engine.gguf.file import ValueType, read_gguf
from engine.gguf.keys import Keys, printable

ARCHITECTURE = "clip"
PROJECTOR = "muse-glimmer"

_MAX_WIDTH = 1 << 17
_CHOOSE = "Choose the projector (mmproj) of Muse Glimmer."


def read_projector_sizes(path: Path) -> Projector:
    """The sizes of the projector at `path`. Raises ModelError for a file that is none of Muse Glimmer."""
    file = read_gguf(path)
    keys = Keys(file, ARCHITECTURE, "projector")
    architecture = keys.optional("general.architecture", ValueType.STRING, "")
    if architecture != ARCHITECTURE:
        keys.fail(f"Its kind is {printable(architecture)!r}; a projector's is {ARCHITECTURE!r}.", _CHOOSE)
    kind = keys.optional("clip.projector_type", ValueType.STRING, "")
    kind = keys.optional("clip.vision.projector_type", ValueType.STRING, kind)
    if kind != PROJECTOR:
        keys.fail(f"It is for models of the kind {printable(kind)!r}.", _CHOOSE)
    return Projector(
        nbytes=sum(tensor.nbytes for tensor in file.tensors.values()),
        width=keys.size("vision.embedding_length", 1, _MAX_WIDTH),
        feed_forward=keys.size("vision.feed_forward_length", 1, _MAX_WIDTH),
    )
