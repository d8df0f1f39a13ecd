"""Which single commands would destroy the system, the home folder or a device."""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path

from sandbox.commands.words import Word, names
from sandbox.commands.wrappers import program

_CORE = names(
    "/ /bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /proc /root /sbin /sys /usr /var /run /System "
    "/Library /Users /home /private /private/etc /private/var /Applications /Volumes /usr/bin /usr/sbin "
    "/usr/lib /usr/lib64 /usr/share /usr/libexec /var/lib /nix /snap"
)
_ALSO_REMOVED = names("/opt /srv /mnt /media /usr/local")
_SAFE_DEVICES = re.compile(r"/dev/(null|zero|full|tty\w*|std(out|err)|fd/\d+|shm/.*|pts/\d+)")
_DISKS = re.compile(
    r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|r?disk|dm-|md\d|loop\d|mapper/|sr\d|nbd|zd\d|zvol/|k?mem$|port$|block/|ram\d)"
    r"|/proc/sysrq-trigger"
)
_STOPPERS = frozenset({"shutdown", "reboot", "halt", "poweroff"})
_ERASERS = frozenset({"wipefs", "blkdiscard", "mke2fs", "mkdosfs", "mkntfs", "mkswap", "badblocks"})
_STOPPED_BY_WORD = frozenset({"init", "telinit", "systemctl", "loginctl", "kill"})
_MAKES_FILE_SYSTEM = re.compile(r"mkfs(\..+)?|newfs(_.+)?")
_DISK_WRITERS = names("tee shred truncate sponge pvcreate sgdisk sfdisk cryptsetup")
_LAST_IS_TARGET = frozenset({"cp", "install", "ln", "pv"})
_FIND_FILTERS = re.compile(
    r"-(i?name|i?path|i?regex|[acm](time|min)|newer.*|size|user|group|empty|perm|type)$"
)


@dataclass(frozen=True, slots=True)
class _Call:
    """A program's words, told apart by their looks: options begin with a dash. `here`: where it runs."""

    words: list[Word]
    here: str | None

    @property
    def options(self) -> list[str]:
        return [word.text for word in self.words[1:] if word.text.startswith("-")]

    @property
    def operands(self) -> list[Word]:
        return [word for word in self.words[1:] if not word.text.startswith("-")]

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words[1:]]


def destroys_by_name(name: str) -> bool:
    """Whether a program of this name does its harm with few arguments or none that tell it apart."""
    return name in _STOPPERS | _ERASERS | _STOPPED_BY_WORD or _MAKES_FILE_SYSTEM.fullmatch(name) is not None


def destruction(words: list[Word], here: str | None) -> str:
    """What a simple command would destroy, in words, or "". Wrappers are the caller's matter."""
    name = program(words)
    if name in _STOPPERS:
        return "would stop the machine"
    if name in _ERASERS or _MAKES_FILE_SYSTEM.fullmatch(name):
        return "would erase a device"
    judge = _judges().get(name)
    return judge(_Call(words, here)) if judge is not None else ""


def overwrites_disk(path: str) -> bool:
    """Whether writing to a path would damage a disk or the kernel's memory."""
    return _DISKS.match(path) is not None


@cache
def _judges() -> Mapping[str, Callable[[_Call], str]]:
    table: dict[str, Callable[[_Call], str]] = {
        "mv": _move,
        "find": _find,
        "dd": _copy,
        "kill": _kill,
        "init": _stop,
        "telinit": _stop,
        "systemctl": _stop,
        "loginctl": _stop,
    }
    table |= dict.fromkeys(("rm", "rmdir", "unlink", "srm"), _remove)
    table |= dict.fromkeys(("chmod", "chown", "chgrp", "setfacl", "chattr"), _change_rights)
    table |= dict.fromkeys(_DISK_WRITERS, _write_disk)
    table |= dict.fromkeys(_LAST_IS_TARGET, _write_last)
    return table


def _remove(call: _Call) -> str:
    if any(len(option) > 4 and "--no-preserve-root".startswith(option) for option in call.options):
        return "would delete past the guard of the system's root"
    recursive = _has(call.options, "rR", "--recursive")
    for word in call.operands:
        if (recursive or "*" in word.text) and _ruined(word, call.here):
            return "would delete the system or the home folder"
    return ""


def _change_rights(call: _Call) -> str:
    recursive = _has(call.options, "R", "--recursive") or "--no-preserve-root" in call.options
    if recursive and any(_system(word, call.here, _CORE) for word in call.operands):
        return "would change the rights of the whole system"
    return ""


def _move(call: _Call) -> str:
    if any(_ruined(word, call.here) for word in call.operands[:-1]):
        return "would move away the system or the home folder"
    return _write_last(call)


def _copy(call: _Call) -> str:
    outs = [text[3:] for text in call.texts if text.startswith("of=")]
    if any(out.startswith("/dev/") and not _SAFE_DEVICES.fullmatch(out) for out in outs):
        return "would overwrite a device"
    return ""


def _kill(call: _Call) -> str:
    return "would end every process" if len(call.texts) > 1 and call.texts[-1] == "-1" else ""


def _stop(call: _Call) -> str:
    stops = (
        {"0", "6"} if program(call.words) in {"init", "telinit"} else {"poweroff", "reboot", "halt", "kexec"}
    )
    return "would stop the machine" if stops & set(call.texts) else ""


def _write_disk(call: _Call) -> str:
    return "would overwrite a device" if any(overwrites_disk(text) for text in call.texts) else ""


def _write_last(call: _Call) -> str:
    return "would overwrite a device" if call.operands and overwrites_disk(call.operands[-1].text) else ""


def _find(call: _Call) -> str:
    texts = call.texts
    deletes = "-delete" in texts or any(
        text in {"-exec", "-execdir", "-ok"} and posixpath.basename(after) in {"rm", "shred", "unlink"}
        for text, after in pairwise(texts)
    )
    if not deletes or any(_FIND_FILTERS.match(text) for text in texts):
        return ""
    first = next((index for index, text in enumerate(texts) if re.match(r"-..|[(!]", text)), len(texts))
    if any(_ruined(word, call.here) for word in call.words[1 : first + 1]):
        return "would delete the system or the home folder"
    return ""


def _has(options: list[str], letters: str, long: str) -> bool:
    for option in options:
        if option.startswith("--"):
            if len(option) > 3 and long.startswith(option):
                return True
        elif any(letter in option for letter in letters):
            return True
    return False


def resolved(word: Word, here: str | None) -> str | None:
    """The place a word names: absolute, or below `~`; None when it cannot be told."""
    text = word.text
    if word.home:
        name, _, rest = text.partition("/")
        return posixpath.normpath(f"~/{rest}") if name == "~" or name.startswith("~") else None
    if text.startswith("/"):
        return "/" + posixpath.normpath(text).lstrip("/")
    if here is None or (word.doubt and "$" in text):
        return None
    return posixpath.normpath(posixpath.join(here, text))


def _ruined(word: Word, here: str | None) -> bool:
    if _system(word, here, _CORE | _ALSO_REMOVED):
        return True
    return any(_is_home(place) for place in _places(word, here))


def _system(word: Word, here: str | None, folders: frozenset[str]) -> bool:
    for place in _places(word, here):
        if place in folders:
            return True
        if re.search(r"[*?\[]", place) and any(
            fnmatchcase(folder, place) for folder in folders if folder != "/"
        ):
            return True
    return False


def _places(word: Word, here: str | None) -> Iterator[str]:
    """The places a word may name, with a last part that matches everything left out: `/*` is `/`."""
    for text in _braced(word.text):
        bare = text.rstrip("/") or "/"
        head, slash, last = bare.rpartition("/")
        everything = re.fullmatch(r"[.?]*\*[*?]*|\.\[!\.\]\*|\.\?\?\*", last) is not None
        if everything:
            bare = head + slash if slash else "."
        place = resolved(Word(bare, word.span, word.doubt, word.glob, word.home), here)
        if place is not None:
            yield place


def _braced(text: str) -> list[str]:
    match = re.search(r"\{([^{}]*,[^{}]*)\}", text)
    if match is None:
        return [text]
    before, after = text[: match.start()], text[match.end() :]
    return [f"{before}{part}{after}" for part in match.group(1).split(",")[:50]]


def _is_home(place: str) -> bool:
    if place == "~" or re.fullmatch(r"/(home|Users)/[^/]+", place):
        return True
    try:
        return place == Path.home().as_posix()
    except RuntimeError:
        return False
