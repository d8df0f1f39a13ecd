"""Typed look-ups in the keys of a GGUF file, which say in words what is missing or wrong."""

from typing import NoReturn, TypeVar

from engine.errors import ModelError
from engine.gguf.file import GgufFile, Scalar, Value, ValueType

CHOOSE_GLIMMER = "Choose a .gguf file of Muse Glimmer."

_DOWNLOAD = "Download it again, or choose another file."

T = TypeVar("T", int, float, bool, str)


class Keys:
    """Typed look-ups that say in words what is missing or wrong. Short names belong to the architecture."""

    def __init__(self, file: GgufFile, architecture: str, use: str = "model") -> None:
        """`use` is what the file is wanted for, as its error names it."""
        self._path = file.path
        self._keys = file.keys
        self._architecture = architecture
        self._use = use

    def fail(self, why: str, todo: str = _DOWNLOAD) -> NoReturn:
        """Refuse the file. Raises ModelError."""
        raise ModelError(f"{self._path.name or self._path} cannot be used as a {self._use}.", why, todo)

    def full(self, short: str) -> str:
        """The whole name of a key of the architecture."""
        return f"{self._architecture}.{short}"

    def get(self, name: str) -> Value | None:
        return self._keys.get(name)

    def required(self, name: str, kind: ValueType) -> Scalar:
        found = self._keys.get(name)
        if found is None:
            self.fail(f"It lacks the key {name}.")
        if found.items is not kind or isinstance(found.value, tuple):
            self.fail(f"Its key {name} is not of type {kind.name.lower()}.")
        return found.value

    def optional(self, name: str, kind: ValueType, default: T) -> T:
        if name not in self._keys:
            return default
        value = self.required(name, kind)
        if not isinstance(value, type(default)):
            self.fail(f"Its key {name} is not of type {kind.name.lower()}.")
        return value

    def array(self, name: str, kind: ValueType) -> tuple[Scalar, ...]:
        found = self._keys.get(name)
        if found is None or found.items is not kind or not isinstance(found.value, tuple):
            self.fail(f"It lacks the key {name}, a list of type {kind.name.lower()}.")
        return found.value

    def size(self, short: str, low: int, high: int) -> int:
        """A required count of the architecture, within [low, high]."""
        name = self.full(short)
        value = self.required(name, ValueType.UINT32)
        if not isinstance(value, int) or not low <= value <= high:
            self.fail(f"Its key {name} is {value}; {low} to {high} is possible.")
        return value

    def equal(self, short: str, expected: int) -> None:
        """An optional count that llama.cpp reads and that has one possible value here."""
        name = self.full(short)
        if (value := self.optional(name, ValueType.UINT32, expected)) != expected:
            self.fail(f"Its key {name} is {value}; only {expected} is supported.")

    def real(self, short: str, low: float, high: float) -> float:
        name = self.full(short)
        value = self.required(name, ValueType.FLOAT32)
        if not isinstance(value, float) or not low <= value <= high:
            self.fail(f"Its key {name} is {value}; {low:g} to {high:g} is possible.")
        return value


def printable(text: str) -> str:
    """One short line with nothing in it that moves a cursor."""
    return "".join(character for character in text if character.isprintable())[:80].strip()
