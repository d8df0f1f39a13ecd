"""What the person sent before, walked like a shell's history."""

MOST = 500


class PastInputs:
    """Oldest first. The text being written when the walk began comes back at its end."""

    def __init__(self) -> None:
        self._sent: list[str] = []
        self._at: int | None = None
        self._draft = ""

    def add(self, text: str) -> None:
        """Remember a sent text and end the walk; a repeated one is kept once."""
        if not self._sent or self._sent[-1] != text:
            self._sent = [*self._sent[1 - MOST :], text]
        self._at = None

    def older(self, current: str) -> str | None:
        """One step back; None when there is nothing older."""
        if self._at is None or current not in (self._sent[self._at], self._draft):
            self._draft, self._at = current, len(self._sent)
        if self._at == 0:
            return None
        self._at -= 1
        return self._sent[self._at]

    def newer(self) -> str | None:
        """One step forward; None when the walk is not going on."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self._sent):
            return self._sent[self._at]
        self._at = None
        return self._draft
