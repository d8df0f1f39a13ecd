"""What no mode may run: commands that would destroy the system, the home folder or a device.

This is a net under the other rules, not a proof: it looks through wrappers, subshells and literal scripts, and
whatever it does not recognise still asks.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

from tree_sitter import Node

from sandbox.commands.words import Doubt, Source, Word, names, parse, read_word

_DEEPEST = 4
_MOST_NODES = 20_000
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
_SHELLS = names("sh bash zsh dash ksh ash mksh fish su script runuser flock")
_WRAPPERS = _SHELLS | names(
    "env sudo doas pkexec timeout nohup nice ionice chrt taskset time command builtin exec stdbuf setsid "
    "xargs parallel watch busybox toybox unshare nsenter chroot systemd-run strace ltrace caffeinate "
    "coproc then do else if while until eval trap unbuffer proxychains fakeroot faketime gtimeout find"
)
_ALL_ARE_SCRIPTS = frozenset({"eval", "trap", "watch", "parallel"})
_STOPPERS = frozenset({"shutdown", "reboot", "halt", "poweroff"})
_ERASERS = frozenset({"wipefs", "blkdiscard", "mke2fs", "mkdosfs", "mkntfs", "mkswap", "badblocks"})
_DISK_WRITERS = names("tee shred truncate sponge pvcreate sgdisk sfdisk cryptsetup")
_LAST_IS_TARGET = frozenset({"cp", "mv", "install", "ln", "pv"})
_FIND_FILTERS = re.compile(
    r"-(i?name|i?path|i?regex|[acm](time|min)|newer.*|size|user|group|empty|perm|type)$"
)


@dataclass(slots=True)
class _Search:
    source: Source
    here: str | None
    depth: int
    script_span: tuple[int, int] | None = None
    nodes: int = 0
    found: list[Doubt] = field(default_factory=list[Doubt])

    def hit(self, reason: str, span: tuple[int, int]) -> None:
        self.found.append(Doubt(reason, self.script_span or span))


def find_ruin(source: Source, root: Path | None) -> Doubt | None:
    """The first part of a command that would destroy, in whatever it is wrapped. Literal scripts are read too."""
    return _ruin_in(source, None if root is None else root.as_posix(), 0, None)


def _ruin_in(source: Source, here: str | None, depth: int, span: tuple[int, int] | None) -> Doubt | None:
    search = _Search(source, here, depth, span)
    _visit(search, source.tree.root_node)
    if not search.found:
        _fork_bomb_text(search)
    return search.found[0] if search.found else None


def _visit(search: _Search, top: Node) -> None:
    """Every node in order, without recursion, so that no depth of nesting can stop it. Subshells keep their own folder."""
    stack: list[Node | tuple[str | None]] = [top]
    while stack and not search.found and search.nodes < _MOST_NODES:
        node = stack.pop()
        if isinstance(node, tuple):
            search.here = node[0]
            continue
        search.nodes += 1
        match node.type:
            case "command":
                _command(search, node)
            case "file_redirect":
                _redirect(search, node)
            case "function_definition":
                _fork_bomb(search, node)
            case "pipeline":
                _pipeline(search, node)
            case "redirected_statement":
                _fed_script(search, node)
            case "subshell" | "command_substitution" | "process_substitution":
                stack.append((search.here,))
            case _:
                pass
        stack.extend(reversed(node.children))


def _words(search: _Search, node: Node) -> list[Word]:
    skipped = {"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"}
    words = [read_word(search.source, child) for child in node.named_children if child.type not in skipped]
    for child in node.named_children:
        if child.type == "file_redirect":
            words.extend(
                read_word(search.source, extra) for extra in child.children_by_field_name("destination")[1:]
            )
    parent = node.parent
    if parent is not None and parent.type == "redirected_statement":
        for redirect in parent.children_by_field_name("redirect"):
            extras = redirect.children_by_field_name("destination")[1:]
            words.extend(read_word(search.source, extra) for extra in extras)
    return words


def _command(search: _Search, node: Node) -> None:
    words = _words(search, node)
    _judge(search, words)
    if words and words[0].text in {"cd", "pushd"}:
        targets = [word for word in words[1:] if not word.text.startswith("-")]
        search.here = _resolved(targets[0], search.here) if targets else "~"


def _judge(search: _Search, words: list[Word]) -> None:
    """One simple command, and every command that it may wrap."""
    if not words:
        return
    _destroyer(search, words)
    if _name(words) not in _WRAPPERS or search.found:
        return
    for script, span in _scripts(words):
        if search.depth < _DEEPEST and not search.found:
            found = _ruin_in(parse(script), search.here, search.depth + 1, search.script_span or span)
            if found is not None:
                search.found.append(found)
    for index in range(1, min(len(words), 200)):
        if not search.found:
            _destroyer(search, words[index:])
            if _name(words[index:]) in _SHELLS | _ALL_ARE_SCRIPTS and words[index].text != words[0].text:
                _judge(search, words[index:])


def _scripts(words: list[Word]) -> Iterator[tuple[str, tuple[int, int]]]:
    name = _name(words)
    span = words[0].span[0], words[-1].span[1]
    if name in _ALL_ARE_SCRIPTS:
        yield " ".join(word.text for word in words[1:]), span
        for word in words[1:]:
            yield word.text, word.span
        return
    for option, value in pairwise(words[1:]):
        if name in _SHELLS and re.fullmatch(r"-[A-Za-z]*c|--command", option.text):
            yield value.text, value.span
        if name == "env" and option.text in {"-S", "--split-string", "-vS"}:
            yield value.text, value.span
    for word in words[1:]:
        if attached := re.match(r"--(?:command|split-string)=(.*)|-S(.+)", word.text, re.DOTALL):
            yield attached.group(1) or attached.group(2), word.span


def _name(words: list[Word]) -> str:
    return posixpath.basename(words[0].text).lower()


def _destroyer(search: _Search, words: list[Word]) -> None:
    name = _name(words)
    span = words[0].span[0], words[-1].span[1]
    options = [word.text for word in words[1:] if word.text.startswith("-")]
    operands = [word for word in words[1:] if not word.text.startswith("-")]
    here = search.here
    reason = ""
    match name:
        case "rm" | "unlink" | "rmdir" | "srm":
            reason = _removal(options, operands, here)
        case "chmod" | "chown" | "chgrp" | "setfacl" | "chattr":
            recursive = _has(options, "R", "--recursive") or "--no-preserve-root" in options
            if recursive and any(_system(word, here, _CORE) for word in operands):
                reason = "would change the rights of the whole system"
        case "mv":
            if any(_ruined(word, here) for word in operands[:-1]):
                reason = "would move away the system or the home folder"
        case "find":
            reason = _find(words, here)
        case "dd":
            outs = [word.text[3:] for word in operands if word.text.startswith("of=")]
            if any(out.startswith("/dev/") and not _SAFE_DEVICES.fullmatch(out) for out in outs):
                reason = "would overwrite a device"
        case "init" | "telinit":
            reason = "would stop the machine" if {word.text for word in operands} & {"0", "6"} else ""
        case "systemctl" | "loginctl":
            if {word.text for word in operands} & {"poweroff", "reboot", "halt", "kexec"}:
                reason = "would stop the machine"
        case "kill":
            if "-1" in options[1:] or (len(words) > 2 and words[-1].text == "-1"):
                reason = "would end every process"
        case _ if name in _STOPPERS:
            reason = "would stop the machine"
        case _ if name in _ERASERS or re.fullmatch(r"mkfs(\..+)?|newfs(_.+)?", name):
            reason = "would erase a device"
        case _ if name in _DISK_WRITERS:
            reason = "would overwrite a device" if any(_DISKS.match(word.text) for word in operands) else ""
        case _ if name in _LAST_IS_TARGET:
            reason = "would overwrite a device" if operands and _DISKS.match(operands[-1].text) else ""
        case _:
            pass
    if reason:
        search.hit(reason, span)


def _has(options: list[str], letters: str, long: str) -> bool:
    for option in options:
        if option.startswith("--"):
            if len(option) > 3 and long.startswith(option):
                return True
        elif any(letter in option for letter in letters):
            return True
    return False


def _removal(options: list[str], operands: list[Word], here: str | None) -> str:
    if any(len(option) > 4 and "--no-preserve-root".startswith(option) for option in options):
        return "would delete past the guard of the system's root"
    recursive = _has(options, "rR", "--recursive")
    for word in operands:
        if (recursive or "*" in word.text) and _ruined(word, here):
            return "would delete the system or the home folder"
    return ""


def _find(words: list[Word], here: str | None) -> str:
    texts = [word.text for word in words[1:]]
    first = next(
        (index for index, text in enumerate(texts) if text.startswith("-") and len(text) > 2), len(texts)
    )
    deletes = "-delete" in texts or any(
        text in {"-exec", "-execdir", "-ok"} and posixpath.basename(after) in {"rm", "shred", "unlink"}
        for text, after in pairwise(texts)
    )
    if not deletes or any(_FIND_FILTERS.match(text) for text in texts):
        return ""
    if any(_ruined(word, here) for word in words[1 : first + 1]):
        return "would delete the system or the home folder"
    return ""


def _resolved(word: Word, here: str | None) -> str | None:
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
        place = _resolved(Word(bare, word.span, word.doubt, word.glob, word.home), here)
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


def _redirect(search: _Search, node: Node) -> None:
    if search.source.of(node).lstrip("0123456789").startswith("<") or not node.named_children:
        return
    for child in node.children_by_field_name("destination")[:1]:
        word = read_word(search.source, child)
        if _DISKS.match(word.text):
            search.hit("would overwrite a device", search.source.span(node))


def _pipeline(search: _Search, node: Node) -> None:
    """A literal text piped into a shell is a script; piped into xargs it is arguments."""
    for left, right in pairwise(node.named_children):
        if left.type != "command" or right.type != "command":
            continue
        said, told = _words(search, left), _words(search, right)
        if not said or not told or _name(said) not in {"echo", "printf"}:
            continue
        text = " ".join(word.text for word in said[1:] if word.text not in {"-n", "-e"})
        programs = {_name([word]) for word in told}
        if "xargs" in programs:
            _judge(search, told + [_split(word, part) for word in said[1:] for part in word.text.split()])
        elif programs & _SHELLS and search.depth < _DEEPEST and not search.found:
            found = _ruin_in(parse(text), search.here, search.depth + 1, search.source.span(left))
            if found is not None:
                search.found.append(found)


def _split(word: Word, part: str) -> Word:
    return Word(part, word.span, "", False, word.home)


def _fed_script(search: _Search, node: Node) -> None:
    """A here-document or here-string into a shell is a script."""
    body = node.child_by_field_name("body")
    if body is None or body.type != "command" or search.depth >= _DEEPEST:
        return
    words = _words(search, body)
    if not words or not {_name([word]) for word in words} & _SHELLS:
        return
    fed = [*node.children_by_field_name("redirect"), *body.children_by_field_name("redirect")]
    for redirect in fed:
        for child in redirect.named_children:
            if child.type in {"heredoc_body", "string", "raw_string", "word", "concatenation"}:
                text = (
                    search.source.of(child)
                    if child.type == "heredoc_body"
                    else read_word(search.source, child).text
                )
                found = _ruin_in(parse(text), search.here, search.depth + 1, search.source.span(child))
                if found is not None and not search.found:
                    search.found.append(found)


def _fork_bomb(search: _Search, node: Node) -> None:
    """A function that starts itself twice, or once in the background, without end."""
    name = node.child_by_field_name("name")
    body = node.child_by_field_name("body")
    if name is None or body is None:
        return
    own = search.source.of(name)
    stack = [body]
    while stack:
        part = stack.pop()
        calls = sum(
            child.type == "command" and search.source.of(child).split()[:1] == [own]
            for child in part.named_children
        )
        background = any(child.type == "&" for child in part.children)
        if calls and ((calls > 1 and part.type == "pipeline") or background):
            search.hit("is a fork bomb", search.source.span(node))
            return
        stack.extend(part.named_children)


def _fork_bomb_text(search: _Search) -> None:
    match = re.search(r"([\w:.]+)\s*\(\s*\)\s*\{\s*\1\s*\|\s*\1\s*&\s*\}", search.source.text)
    if match is not None:
        search.hit("is a fork bomb", match.span())
