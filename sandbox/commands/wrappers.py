"""Programs that start other programs, and where among a wrapper's words the commands begin."""

import posixpath
import re

from sandbox.commands.words import Word, names

SHELLS = names("sh bash zsh dash ksh ash mksh fish su script runuser flock")
WRAPPERS = SHELLS | names(
    "env sudo doas pkexec timeout nohup nice ionice chrt taskset time command builtin exec stdbuf setsid "
    "xargs parallel watch busybox toybox unshare nsenter chroot systemd-run strace ltrace caffeinate "
    "coproc then do else if while until eval trap unbuffer proxychains fakeroot faketime gtimeout find"
)
_WITH_VALUE = {
    "sudo": "ugUhpCTDRrt",
    "doas": "uC",
    "env": "uC",
    "timeout": "sk",
    "gtimeout": "sk",
    "nice": "n",
    "ionice": "cnp",
    "stdbuf": "ioe",
    "xargs": "InLPdasE",
    "exec": "a",
    "watch": "n",
    "su": "sgG",
    "runuser": "ugGs",
    "nsenter": "t",
    "systemd-run": "pu",
    "strace": "eopu",
    "flock": "wE",
    "parallel": "jSa",
    "time": "fo",
}
_LONG_WITH_VALUE = names(
    "--user --group --host --prompt --chdir --unset --signal --kill-after --adjustment --max-args "
    "--max-procs --delimiter --arg-file --interval --class --classdata --input --output --error --property "
    "--unit --target --jobs --timeout --wait"
)
_OPERANDS_FIRST = {"flock": 1, "chroot": 1, "taskset": 1, "su": 1, "faketime": 1, "script": 1}
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def program(words: list[Word]) -> str:
    """The name of the program that words start, whatever folder it is in."""
    return posixpath.basename(words[0].text).lower()


def commands_in(words: list[Word]) -> set[int]:
    """Where commands begin: the wrapper itself, and behind its options and values what it starts.

    What stands further on is an argument of one of these, such as a text to search for.
    """
    begins: set[int] = set()
    pending = [0]
    while pending:
        at = pending.pop()
        if at >= len(words) or at in begins:
            continue
        begins.add(at)
        name = program(words[at:])
        if name == "find":
            runs = [index for index in range(at, len(words)) if words[index].text in _FIND_RUNS]
            pending.extend(index + 1 for index in runs)
        elif name in WRAPPERS:
            pending.append(_past_arguments(words, at, name))
    return begins


def _past_arguments(words: list[Word], at: int, name: str) -> int:
    """The first word behind a wrapper's own options, values, numbers and assignments."""
    operands = _OPERANDS_FIRST.get(name, 0)
    at += 1
    while at < len(words):
        text = words[at].text
        if text.startswith("-"):
            short = len(text) == 2 and text[1] in _WITH_VALUE.get(name, "")
            at += 2 if short or text in _LONG_WITH_VALUE else 1
        elif re.fullmatch(r"[A-Za-z_]\w*=.*|(?:0x)?\d[\da-fA-F.,:]*[smhd%]?", text, re.DOTALL):
            at += 1
        elif operands and program(words[at:]) not in WRAPPERS:
            operands -= 1
            at += 1
        else:
            break
    return at
