"""Whether a simple command only reads: which program it starts, and with which arguments."""

from sandbox.commands.checks import find_doubt, test_doubt
from sandbox.commands.git import git_doubt
from sandbox.commands.options import is_harmless_variable
from sandbox.commands.places import Places
from sandbox.commands.readers import readers
from sandbox.commands.words import Doubt, Word, names

_FREE_TEXT = frozenset({"echo", "true", "false", ":"})
_WRAPPERS = names(
    "env sudo doas su timeout nohup nice ionice time command builtin exec stdbuf setsid xargs parallel "
    "watch eval source . sh bash zsh dash trap"
)


def program_doubt(words: list[Word], places: Places) -> Doubt | None:
    """Why a command asks, or None when it only reads. Its first word is the literal name of its program."""
    name = words[0]
    match name.text:
        case "cd":
            doubt = _cd_doubt(words, places)
        case "git":
            doubt = git_doubt(words, places)
        case "find":
            doubt = find_doubt(words, places)
        case "test":
            doubt = test_doubt(words, places)
        case text if text in _FREE_TEXT:
            doubt = _text_doubt(words, places)
        case text if (reader := readers().get(text)) is not None:
            doubt = reader.doubt(words, places)
        case text if text in _WRAPPERS:
            doubt = Doubt(f"{text} runs another program", name.span)
        case text:
            doubt = Doubt(f"{text} is not known to only read", name.span)
    return doubt


def _cd_doubt(words: list[Word], places: Places) -> Doubt | None:
    if len(words) != 2:
        return Doubt("leaves the project's folder", words[0].span)
    target = words[1]
    if target.doubt or target.glob or target.text.startswith("-") or not target.text:
        return Doubt(target.doubt or "goes to a folder that cannot be known beforehand", target.span)
    if target.text.startswith("/"):
        return Doubt("goes to a folder by its absolute path", target.span)
    return places.path_doubt(target.text, target.span)


def _text_doubt(words: list[Word], places: Places) -> Doubt | None:
    """What is printed as it is: options do no harm, and of the variables only well-known ones pass."""
    for word in words[1:]:
        if word.doubt and not is_harmless_variable(word):
            return Doubt(word.doubt, word.span)
        if word.glob and not word.doubt and (doubt := places.doubt(word)) is not None:
            return doubt
    return None
