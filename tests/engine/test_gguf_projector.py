"""What is read from a projector's file for planning, and what is refused."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from engine.errors import ModelError
from engine.gguf.projector import read_projector_sizes


def write(path: Path, architecture: str = "clip", kind: str = "muse-glimmer", width: int = 1536) -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_string("clip.projector_type", kind)
    writer.add_uint32("clip.vision.embedding_length", width)
    writer.add_uint32("clip.vision.feed_forward_length", 8960)
    writer.add_tensor("mm.0.weight", np.ones((32, 64), np.float32))
    writer.add_tensor("mm.1.weight", np.ones((16, 32), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_its_sizes(tmp_path: Path) -> None:
    found = read_projector_sizes(write(tmp_path / "mmproj.gguf"))
    assert (found.nbytes, found.width, found.feed_forward) == (32 * 64 * 4 + 16 * 32 * 2, 1536, 8960)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architecture": "muse-glimmer"}, "a projector's is 'clip'"),
        ({"kind": "llava"}, "'llava'"),
        ({"width": 0}, "embedding_length is 0"),
    ],
)
def test_what_is_no_projector_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write(tmp_path / "mmproj.gguf", **changes)
    with pytest.raises(ModelError) as caught:
        read_projector_sizes(path)
    assert words in str(caught.value)
    assert "cannot be used as a projector" in caught.value.what
