"""Whether a text is worth looking at for pictures: cheap, and without anything that reads one."""

ENDS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")

_STARTS = ("/", "~/", "'", '"', "file://")
_LONGEST_DROP = 65_536


def may_name_pictures(text: str) -> bool:
    """Whether a typed message may name a picture."""
    return "@" in text or "/" in text


def may_be_dropped(text: str) -> bool:
    """Whether pasted text may be nothing but the paths of pictures, as a terminal pastes dropped files."""
    words = text.strip()
    ends = words.rstrip("'\"").lower().endswith(ENDS)
    return ends and words.startswith(_STARTS) and len(words) < _LONGEST_DROP
