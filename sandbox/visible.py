"""What a person sees of a command or a path: its exact content, with nothing hidden in it."""

import re
import unicodedata

_WORD = re.compile(r"\w+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ASCII_LETTER = re.compile(r"[A-Za-z]")
_LOOK_ALIKES = frozenset(
    "\u043c\u043a\u0433\u0430\u0441\u0501\u0435\u0455\u0456\u0458\u04bb\u04cf\u043e\u0440\u051b\u0443\u051d\u0445\u04af\u0475"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423\u0417"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd\u03c1"
    "\u03b1\u03b9\u03ba\u03c5\u03c7\u0131\u0261\u0251\u028f\u1d0f\u1d04"
)
_INVISIBLE_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u17b4\u17b5\u2800\u034f")


def _code(char: str) -> str:
    point = ord(char)
    if point <= 0xFF:
        return f"\\x{point:02x}"
    if point <= 0xFFFF:
        return f"\\u{point:04x}"
    return f"\\U{point:08x}"


def _hides(char: str) -> bool:
    if char in _INVISIBLE_LETTERS:
        return True
    category = unicodedata.category(char)
    if category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or (category == "Zs" and char != " "):
        return True
    if "\ufe00" <= char <= "\ufe0f" or "\U000e0000" <= char <= "\U000e0fff":
        return True
    if char.isascii():
        return False
    return unicodedata.normalize("NFKC", char).isascii()


def _foreign(char: str) -> bool:
    """A letter or mark that can pass for an ASCII one. Latin-1 letters such as é are told apart by eye."""
    return not char.isascii() and not "\u00c0" <= char <= "\u00ff"


def _word(match: re.Match[str]) -> str:
    word = match.group()
    mixed = _ASCII_LETTER.search(word) is not None
    whole = all(char in _LOOK_ALIKES for char in word if char.isalpha()) and not word.isascii()
    if not (mixed or whole):
        return word
    return "".join(_code(char) if _foreign(char) else char for char in word)


def _mark(text: str, index: int) -> bool:
    """A combining mark that sits on an ASCII character, where it changes how that one reads."""
    if not unicodedata.category(text[index]).startswith("M"):
        return False
    base = index
    while base >= 0 and unicodedata.category(text[base]).startswith("M"):
        base -= 1
    return base < 0 or text[base].isascii()


def _shown(text: str, index: int) -> str:
    char = text[index]
    if char == "\n":
        return "\\n\n"
    if char == "\t":
        return "\\t"
    if _hides(char) or _mark(text, index):
        return _code(char)
    return char


def escaped(text: str) -> str:
    r"""The text with everything a screen would hide or disguise written out.

    A line break shows as `\n` and a real break, a tab as `\t`; control, direction, zero-width and tag
    characters, unusual spaces, and letters that pass for others show as `\x1b`, `\u202e` or `\U000e0041`.
    Everything else stays as it is, and nothing is left out.
    """
    plain = _WORD.sub(_word, text)
    return "".join(_shown(plain, index) for index in range(len(plain)))


def hides_something(text: str) -> bool:
    """Whether a text holds characters that `escaped` writes out, line breaks and tabs apart."""
    if text.isascii():
        return _CONTROL.search(text) is not None
    return any(escaped(part) != part for part in re.split(r"[\n\t]", text))
