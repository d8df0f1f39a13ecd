"""What can go wrong with a picture, in words a person can act on."""


class PictureError(Exception):
    """There is no picture to be had: `what` happened, `why`, and what to do (`todo`)."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what = what
        self.why = why
        self.todo = todo
        super().__init__(" ".join(part for part in (what, why, todo) if part))
