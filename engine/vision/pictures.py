"""The pictures of a conversation: their places in the token log, and the vectors that stand there.

A place holds no token. In the log it has a number below zero, drawn from a digest of the picture's pixels,
the encoder and the place: so two pictures never pass for one another, where a conversation is compared with
another one, in memory or in a stored state.
"""

import contextlib
import hashlib
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.errors import EngineError
from engine.messages import Image
from engine.protocol import PictureProgress
from engine.vision.embedding_store import EmbeddingStore
from engine.vision.encoder import Encoder
from engine.vision.grid import grid_of
from engine.vision.pixels import pixels_of

Vectors = npt.NDArray[np.float32]

_HELD_BYTES = 128 * 1024 * 1024
"""Vectors kept in memory; a screen at the 30B's width takes 32 MB."""
_ASK_SECONDS = 0.05
_POSITIVE = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class _Known:
    """A picture that was seen. Its file is kept, and its pixels are not: they are many times as large."""

    image: Image
    key: str
    places: tuple[int, ...]


def is_place(token: int) -> bool:
    """Whether an id of the log is a picture's place and no token."""
    return token < 0


class Pictures:
    """What the model sees of pictures, over one encoder."""

    def __init__(self, encoder: Encoder, identity: str, store: EmbeddingStore | None = None) -> None:
        """`identity` is the projector file's: vectors of another one are of no use."""
        self._encoder = encoder
        self._identity = f"{identity}:{encoder.options.cap}"
        self._store = store
        self._by_file: dict[bytes, _Known] = {}
        self._by_place: dict[int, tuple[_Known, int]] = {}
        self._held: OrderedDict[str, Vectors] = OrderedDict()

    def places(self, image: Image) -> tuple[int, ...]:
        """The ids of a picture's places in the log. Raises EngineError where it cannot be read."""
        file = hashlib.sha256(image.data).digest()
        if (known := self._by_file.get(file)) is None:
            known = self._know(image)
            self._by_file[file] = known
            for number, place in enumerate(known.places):
                self._by_place[place] = (known, number)
        return known.places

    def see(self, places: Sequence[int], goes_on: Callable[[], bool]) -> Iterator[PictureProgress]:
        """Encode the picture that `places` begin with, unless its vectors are at hand or kept.

        Ends early where `goes_on` says no. Raises EngineError.
        """
        known, _ = self._picture(places[0])
        if known.key in self._held:
            return
        width = self._encoder.options.width
        vectors = self._store.load(known.key, len(known.places), width) if self._store else None
        if vectors is None:
            vectors = yield from self._encode(known, goes_on)
            if vectors is None:
                return
            if self._store is not None:
                self._store.save(known.key, vectors)
        self._hold(known.key, vectors)

    def vectors(self, places: Sequence[int]) -> Vectors | None:
        """The vectors [n, width] of places of one picture, one after the other; None where `see` is due."""
        known, first = self._picture(places[0])
        held = self._held.get(known.key)
        if held is None:
            return None
        self._held.move_to_end(known.key)
        return held[first : first + len(places)]

    def run(self, places: Sequence[int]) -> int:
        """How many of `places`, from the first on, belong to the same picture, in order."""
        known, first = self._picture(places[0])
        count = 0
        for place, own in zip(places, known.places[first:], strict=False):
            if place != own:
                break
            count += 1
        return count

    def forget(self) -> None:
        """The conversation is over: its pictures are needed no more. What was encoded stays at hand."""
        self._by_file.clear()
        self._by_place.clear()

    def close(self) -> None:
        """Free the encoder."""
        self._encoder.close()

    def _know(self, image: Image) -> _Known:
        pixels = pixels_of(image)
        count = grid_of(pixels.width, pixels.height, self._encoder.options.cap).tokens
        digest = hashlib.sha256(self._identity.encode() + pixels.key)
        numbers = np.frombuffer(hashlib.shake_256(digest.digest()).digest(4 * count), np.uint32)
        places = tuple(-1 - int(number) for number in numbers & _POSITIVE)
        return _Known(image, digest.hexdigest(), places)

    def _picture(self, place: int) -> tuple[_Known, int]:
        found = self._by_place.get(place)
        if found is None:
            raise EngineError(
                "A picture of the conversation is no longer at hand.",
                "It was read in an earlier run.",
                "Attach it again, or start a new conversation.",
            )
        return found

    def _hold(self, key: str, vectors: Vectors) -> None:
        self._held[key] = vectors
        while len(self._held) > 1 and sum(held.nbytes for held in self._held.values()) > _HELD_BYTES:
            self._held.popitem(last=False)

    def _encode(
        self, known: _Known, goes_on: Callable[[], bool]
    ) -> Generator[PictureProgress, None, Vectors | None]:
        """Run the encoder in a thread of its own, so that its progress can be handed on meanwhile."""
        blocks = self._encoder.options.blocks
        progress: queue.SimpleQueue[int] = queue.SimpleQueue()
        outcome: list[Vectors | EngineError | None] = []
        unwanted = threading.Event()

        def wanted() -> bool:
            return goes_on() and not unwanted.is_set()

        def work() -> None:
            try:
                outcome.append(self._encoder.encode(pixels_of(known.image), progress.put, wanted))
            except EngineError as error:
                outcome.append(error)

        worker = threading.Thread(target=work, name="vision", daemon=True)
        worker.start()
        try:
            yield PictureProgress(0, blocks)
            while worker.is_alive():
                with contextlib.suppress(queue.Empty):
                    yield PictureProgress(progress.get(timeout=_ASK_SECONDS), blocks)
        finally:
            unwanted.set()
            worker.join()
        found = outcome[0] if outcome else None
        if isinstance(found, EngineError):
            raise found
        return None if found is None else _rounded(found)


def _rounded(vectors: Vectors) -> Vectors:
    """As they are kept on disk, so that a picture is the same whether it was encoded now or before."""
    if np.abs(vectors).max(initial=0.0) > np.finfo(np.float16).max:
        return vectors
    return vectors.astype(np.float16).astype(np.float32)
