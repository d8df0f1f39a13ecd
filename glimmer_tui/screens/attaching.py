"""Pictures on their way into a message: from files, the clipboard or a drop, until the message is sent.

Whatever reads a file or asks the desktop runs beside the event loop. What goes wrong is told in one notice,
and the text that was typed goes back to where it was written.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.protocol import Capabilities
from glimmer_tui.agent.sight import cannot_see
from glimmer_tui.pictures.names import may_name_pictures
from glimmer_tui.screens.port import Conversation
from glimmer_tui.widgets.attachments import Attachments
from glimmer_tui.widgets.composer import Composer
from glimmer_tui.widgets.status import StatusLine

if TYPE_CHECKING:
    from glimmer_tui.pictures.attached import Attached
    from glimmer_tui.pictures.outgoing import Outgoing

Say = Callable[[str, str], Awaitable[None]]


class Attaching:
    """Fills a composer's row of pictures, and sends what is written with them. Messages keep their order."""

    def __init__(
        self, session: Conversation, root: Path, composer: Composer, status: StatusLine, say: Say
    ) -> None:
        """Relative paths start at `root`; `say` puts a sentence of some level into the conversation."""
        self.row = Attachments()
        self._session = session
        self._root = root
        self._composer = composer
        self._status = status
        self._say = say
        self._model: Capabilities | None = None
        self._turnstile = asyncio.Lock()
        self._on_their_way = 0

    async def meet(self, model: Capabilities) -> None:
        """The model is loaded. Pictures that wait for one that sees none are taken away, in words."""
        self._model = model
        self.row.cap = model.picture_tokens
        if self.row.pictures and self._is_blind:
            self.row.take()
            self._note_row()
            await self._refuse()

    def drop_last(self) -> None:
        """Take the last picture away."""
        self.row.drop_last()
        self._note_row()

    def clear(self) -> None:
        """Take all pictures away."""
        self.row.take()
        self._note_row()

    async def add_file(self, written: str) -> None:
        """Attach the picture at a path as it was typed behind `/image`."""
        if self._is_blind:
            await self._refuse()
            return
        from glimmer_tui.pictures.mentions import picture_at

        async with self._reading(lambda: self._restore(f"/image {written}")):
            self._add((await asyncio.to_thread(picture_at, written, self._root),))

    async def add_clipboard(self) -> None:
        """Attach the pictures in the clipboard; text goes where the cursor is."""
        from glimmer_tui.pictures.attached import PictureError
        from glimmer_tui.pictures.clipboard import read_clipboard

        copied = self._composer.app.clipboard
        try:
            content = (await read_clipboard(self._root)).content
        except PictureError as fault:
            if not copied:
                await self._say(str(fault), "warning")
                return
            content = copied
        match content:
            case str():
                self._composer.insert(content)
            case None:
                await self._say("The clipboard is empty.", "info")
            case _ if self._is_blind:
                await self._refuse()
            case pictures:
                async with self._reading(lambda: None):
                    self._add(pictures)

    async def add_dropped(self, text: str) -> None:
        """Attach dropped files; where the pasted text is something else, it is text."""
        from glimmer_tui.pictures.outgoing import dropped

        def paste() -> None:
            self._composer.insert(text)

        async with self._reading(paste):
            pictures = await asyncio.to_thread(dropped, text, self._root)
            if not pictures or self._is_blind:
                paste()
            if self._is_blind and pictures:
                await self._refuse()
            elif pictures:
                self._add(pictures)

    def send(self, text: str) -> Coroutine[Any, Any, None] | None:
        """Send a message with the pictures attached to it, and those that it names.

        One without any goes at once. What is returned otherwise is to be run beside the event loop's work;
        messages that are sent meanwhile go after it.
        """
        if not (self.row.pictures or may_name_pictures(text) or self._on_their_way):
            self._session.submit(text)
            return None
        attached = self.row.take()
        self._note_row()
        self._on_their_way += 1
        return self._send(text, attached)

    async def _send(self, text: str, attached: "Sequence[Attached]") -> None:
        from glimmer_tui.pictures.outgoing import outgoing

        def give_back() -> None:
            self.row.give_back(attached)
            self._note_row()
            self._composer.give_back(text)

        try:
            async with self._turnstile, self._reading(give_back):
                message = await asyncio.to_thread(outgoing, text, attached, self._root)
                await self._submit(message, give_back)
        finally:
            self._on_their_way -= 1

    async def _submit(self, message: "Outgoing", give_back: Callable[[], None]) -> None:
        if not message.pictures:
            self._session.submit(message.text)
        elif not self._is_blind:
            self._session.submit(message.text, [picture.image for picture in message.pictures])
        elif message.insists:
            give_back()
            await self._refuse()
        else:
            self._session.submit(message.typed)

    def _add(self, pictures: "Sequence[Attached]") -> None:
        from glimmer_tui.pictures.mentions import MOST
        from glimmer_tui.pictures.outgoing import too_many

        if len(self.row.pictures) + len(pictures) > MOST:
            raise too_many()
        self.row.add(pictures)
        self._note_row()

    @asynccontextmanager
    async def _reading(self, undo: Callable[[], None]) -> AsyncIterator[None]:
        """Tell that a picture is read; where it cannot be, `undo` what was begun and say why."""
        from glimmer_tui.pictures.attached import PictureError

        self._status.show(hint="reading the picture")
        try:
            yield
        except PictureError as fault:
            undo()
            await self._say(str(fault), "warning")
        finally:
            self._status.show(hint="")

    def _restore(self, text: str) -> None:
        """A command that failed goes back where it was typed, unless something else is written by now."""
        if not self._composer.text:
            self._composer.give_back(text)

    def _note_row(self) -> None:
        self._composer.has_pictures = bool(self.row.pictures)

    @property
    def _is_blind(self) -> bool:
        return self._model is not None and not self._model.vision

    async def _refuse(self) -> None:
        if self._model is not None:
            await self._say(cannot_see(self._model.is_demo), "warning")
