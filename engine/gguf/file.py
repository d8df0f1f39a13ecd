"""Read and check a GGUF file before any native code sees it.

llama.cpp asserts on much of what it reads, and a failed assertion ends the process. So the whole header
is walked here first: every count, string, array and tensor extent is checked against the file itself,
and nothing is allocated on a count's word alone. `engine.gguf.model` checks what the model needs.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NoReturn

from engine.errors import ModelError

HEADER_LIMIT = 64 * 1024 * 1024
"""Bytes in which all keys and tensor infos must lie; a vocabulary of 200,000 tokens takes about 11 MB."""

MAX_KEYS = 4096
MAX_TENSORS = 16384
MAX_KEY_BYTES = 65535
MAX_TENSOR_NAME_BYTES = 63
MAX_DIMENSIONS = 4
MIN_ALIGNMENT = 32
MAX_ALIGNMENT = 65536

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT_KEY = "general.alignment"


class ValueType(IntEnum):
    """How a key's value is stored."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


class TensorType(IntEnum):
    """How a tensor's numbers are stored."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    IQ2_XXS = 16
    IQ2_XS = 17
    IQ3_XXS = 18
    IQ1_S = 19
    IQ4_NL = 20
    IQ3_S = 21
    IQ2_S = 22
    IQ4_XS = 23
    IQ1_M = 29
    BF16 = 30
    TQ1_0 = 34
    TQ2_0 = 35
    MXFP4 = 39


_BLOCKS: Mapping[TensorType, tuple[int, int]] = {
    TensorType.F32: (1, 4),
    TensorType.F16: (1, 2),
    TensorType.BF16: (1, 2),
    TensorType.Q4_0: (32, 18),
    TensorType.Q4_1: (32, 20),
    TensorType.Q5_0: (32, 22),
    TensorType.Q5_1: (32, 24),
    TensorType.Q8_0: (32, 34),
    TensorType.Q2_K: (256, 84),
    TensorType.Q3_K: (256, 110),
    TensorType.Q4_K: (256, 144),
    TensorType.Q5_K: (256, 176),
    TensorType.Q6_K: (256, 210),
    TensorType.IQ2_XXS: (256, 66),
    TensorType.IQ2_XS: (256, 74),
    TensorType.IQ3_XXS: (256, 98),
    TensorType.IQ1_S: (256, 50),
    TensorType.IQ4_NL: (32, 18),
    TensorType.IQ3_S: (256, 110),
    TensorType.IQ2_S: (256, 82),
    TensorType.IQ4_XS: (256, 136),
    TensorType.IQ1_M: (256, 56),
    TensorType.TQ1_0: (256, 54),
    TensorType.TQ2_0: (256, 66),
    TensorType.MXFP4: (32, 17),
}
"""Numbers in a block and bytes of a block."""

_NUMBERS: Mapping[ValueType, str] = {
    ValueType.UINT8: "B",
    ValueType.INT8: "b",
    ValueType.UINT16: "H",
    ValueType.INT16: "h",
    ValueType.UINT32: "I",
    ValueType.INT32: "i",
    ValueType.FLOAT32: "f",
    ValueType.BOOL: "B",
    ValueType.UINT64: "Q",
    ValueType.INT64: "q",
    ValueType.FLOAT64: "d",
}

Scalar = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Value:
    """A key's value. `items` is its type; an array's `value` is a tuple of items."""

    items: ValueType
    value: Scalar | tuple[Scalar, ...]

    @property
    def is_array(self) -> bool:
        return isinstance(self.value, tuple)


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor's place. `shape` runs from the fastest dimension; `offset` counts from the file's start."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The checked header of a GGUF file."""

    path: Path
    version: int
    keys: Mapping[str, Value]
    tensors: Mapping[str, TensorInfo]


def read_gguf(path: Path) -> GgufFile:
    """Read the header of `path`. Raises ModelError for anything that is not a whole, sound GGUF file."""
    header, size = _open(path)
    _refuse_foreign(path, header)
    reader = _Reader(path, header, size)
    version = reader.number("I")
    if version not in _VERSIONS:
        reader.fail(
            f"It is GGUF version {version}; versions 2 and 3 are supported.", "Convert the model again."
        )
    tensor_count = reader.count(MAX_TENSORS, "tensors")
    key_count = reader.count(MAX_KEYS, "keys")
    keys = _read_keys(reader, key_count)
    tensors = _read_tensors(reader, tensor_count, _alignment(reader, keys))
    return GgufFile(path, version, keys, tensors)


def unusable(path: Path, why: str, todo: str) -> ModelError:
    """The error for a file that is not a usable model."""
    return ModelError(f"{path.name or path} cannot be used as a model.", why, todo)


def _open(path: Path) -> tuple[bytes, int]:
    try:
        if path.is_dir():
            raise unusable(path, "It is a folder.", "Name the .gguf file inside it.")
        if path.exists() and not path.is_file():
            raise unusable(path, "It is not a regular file.", "Name a .gguf file.")
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            return file.read(min(size, HEADER_LIMIT)), size
    except FileNotFoundError as error:
        raise ModelError(
            f"There is no model file at {path}.", "", "Check the path, or download the model again."
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelError(
            f"The model file {path} cannot be read.",
            f"The system says: {reason}.",
            "Check the file's permissions and the disk.",
        ) from error


def _refuse_foreign(path: Path, header: bytes) -> None:
    """Name what a file that is not GGUF seems to be."""
    if header.startswith(_MAGIC):
        return
    if not header:
        raise unusable(path, "It is empty.", "Download it again.")
    todo = "Choose a .gguf file of Muse Glimmer."
    if header.startswith(b"version https://git-lfs"):
        todo = "Fetch the real file with `git lfs pull`, or download it again."
        raise unusable(path, "It is a Git LFS pointer: the model itself was not downloaded.", todo)
    if header.startswith(b"PK"):
        raise unusable(path, "It is a zip archive (PyTorch checkpoints are zip archives too).", todo)
    if len(header) > 8 and header[8:9] == b"{" and int.from_bytes(header[:8], "little") < 1 << 32:
        raise unusable(path, "It is a safetensors file, not GGUF.", todo)
    if header[:4] in (b"ggml", b"ggjt", b"ggla", b"lmgg", b"tjgg", b"algg"):
        raise unusable(path, "It is in a model format older than GGUF.", todo)
    if header.lstrip()[:1] == b"<":
        raise unusable(path, "It is a web page, so the download went wrong.", "Download it again.")
    if not any(header[:4096]):
        raise unusable(path, "It starts with zeros, so the download did not finish.", "Download it again.")
    if _looks_like_text(header[:4096]):
        raise unusable(path, "It is a text file, not GGUF.", todo)
    raise unusable(path, "It is not a GGUF file.", todo)


def _looks_like_text(start: bytes) -> bool:
    return all(byte >= 32 or byte in b"\t\n\r\f" for byte in start)


class _Reader:
    """A cursor over the header that never reads past its end."""

    def __init__(self, path: Path, header: bytes, size: int) -> None:
        self._path = path
        self._header = header
        self._at = len(_MAGIC)
        self.size = size

    def fail(self, why: str, todo: str = "Download it again, or choose another file.") -> NoReturn:
        raise unusable(self._path, why, todo)

    def number(self, code: str) -> int:
        """One little-endian integer of a struct code."""
        return int.from_bytes(self.take(struct.calcsize(f"<{code}")), "little")

    def take(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._header):
            if self.size > len(self._header):
                self.fail(f"Its header is longer than {HEADER_LIMIT // 1024 // 1024} MiB.")
            self.fail("It ends in the middle of its header, so it was damaged or not fully downloaded.")
        taken = self._header[self._at : end]
        self._at = end
        return taken

    def count(self, limit: int, what: str) -> int:
        number = self.number("Q")
        if number > limit:
            self.fail(f"It claims {number} {what}; at most {limit} are possible.")
        return number

    def text(self, limit: int | None = None) -> str:
        length = self.number("Q")
        if limit is not None and length > limit:
            self.fail(f"A name in it is {length} bytes long; at most {limit} are possible.")
        raw = self.take(length)
        if b"\0" in raw:
            self.fail("A text in it holds a zero byte, so it is damaged.")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.fail("A text in it is not UTF-8, so it is damaged.")

    def value_type(self) -> ValueType:
        number = self.number("I")
        try:
            return ValueType(number)
        except ValueError:
            self.fail(f"A key in it has the unknown type {number}, so it is damaged.")

    def scalars(self, kind: ValueType, count: int) -> tuple[Scalar, ...]:
        """`count` values of one type; the bytes are there before anything is allocated."""
        if kind is ValueType.STRING:
            return tuple(self.text() for _ in range(self.fits(count, 8)))
        code = _NUMBERS.get(kind)
        if code is None:
            self.fail("It holds an array of arrays, which no model needs, so it is damaged.")
        width = struct.calcsize(f"<{code}")
        values: tuple[int | float, ...] = struct.unpack(f"<{count}{code}", self.take(count * width))
        if kind is not ValueType.BOOL:
            return values
        if any(value > 1 for value in values):
            self.fail("A yes-or-no value in it is neither, so it is damaged.")
        return tuple(map(bool, values))

    def fits(self, count: int, least: int) -> int:
        """`count`, if that many items of at least `least` bytes can still come."""
        if count * least > len(self._header) - self._at:
            self.fail("A list in it claims more items than the file holds, so it was damaged or cut short.")
        return count

    def padded(self, alignment: int) -> int:
        """The next aligned position, counted from the file's start."""
        return _padded(self._at, alignment)


def _read_keys(reader: _Reader, count: int) -> dict[str, Value]:
    keys: dict[str, Value] = {}
    for _ in range(count):
        name = reader.text(MAX_KEY_BYTES)
        if not name:
            reader.fail("A key in it has no name, so it is damaged.")
        if name in keys:
            reader.fail(f"The key {name!r} is there twice, so it is damaged.")
        kind = reader.value_type()
        if kind is ValueType.ARRAY:
            kind = reader.value_type()
            keys[name] = Value(kind, reader.scalars(kind, reader.number("Q")))
        else:
            keys[name] = Value(kind, reader.scalars(kind, 1)[0])
    return keys


def _alignment(reader: _Reader, keys: Mapping[str, Value]) -> int:
    given = keys.get(_ALIGNMENT_KEY)
    if given is None:
        return MIN_ALIGNMENT
    alignment = given.value
    if given.items is not ValueType.UINT32 or not isinstance(alignment, int):
        reader.fail(f"Its {_ALIGNMENT_KEY} is not a 32-bit number.")
    if not MIN_ALIGNMENT <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        reader.fail(f"Its {_ALIGNMENT_KEY} is {alignment}, which is not a usable power of two.")
    return alignment


def _read_tensors(reader: _Reader, count: int, alignment: int) -> dict[str, TensorInfo]:
    found: list[TensorInfo] = []
    expected = 0
    for _ in range(count):
        tensor = _read_tensor(reader)
        if tensor.offset != expected:
            reader.fail(f"The tensor {tensor.name!r} is not where it should be, so the file is damaged.")
        expected = _padded(expected + tensor.nbytes, alignment)
        found.append(tensor)
    start = reader.padded(alignment)
    tensors: dict[str, TensorInfo] = {}
    for tensor in found:
        if tensor.name in tensors:
            reader.fail(f"The tensor {tensor.name!r} is there twice, so the file is damaged.")
        offset = start + tensor.offset
        if offset + tensor.nbytes > reader.size:
            reader.fail(
                f"It ends before the tensor {tensor.name!r} does "
                f"({reader.size} bytes), so it was cut short or not fully downloaded."
            )
        tensors[tensor.name] = TensorInfo(tensor.name, tensor.shape, tensor.type, offset, tensor.nbytes)
    return tensors


def _read_tensor(reader: _Reader) -> TensorInfo:
    name = reader.text(MAX_TENSOR_NAME_BYTES)
    dimensions = reader.number("I")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        reader.fail(f"The tensor {name!r} has {dimensions} dimensions, so the file is damaged.")
    shape = tuple(reader.number("Q") for _ in range(dimensions))
    number = reader.number("I")
    try:
        kind = TensorType(number)
    except ValueError:
        reader.fail(f"The tensor {name!r} has type {number}, which is unknown here.")
    block, block_bytes = _BLOCKS[kind]
    elements = 1
    for extent in shape:
        elements *= extent
    if not 0 < elements < 1 << 48 or shape[0] % block:
        reader.fail(f"The tensor {name!r} has the impossible shape {shape}, so the file is damaged.")
    return TensorInfo(name, shape, kind, reader.number("Q"), elements // block * block_bytes)


def _padded(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment
