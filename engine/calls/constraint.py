"""Which tokens may come next in a reply, so that a tool call cannot be malformed.

Free text stays free: only the headers of messages and the bodies of calls are constrained. A reply is
watched from right after `<|start|>assistant`, token by token:

    constraint = CallConstraint(vocabulary, request.tools)
    token = sampler.sample(...)
    if not constraint.allows(token):
        constraint.mask(scores)          # in place, one row of logits
        token = sampler.sample(...)
    constraint.accept(token)             # for each token that is kept, in order

`allows` and `mask` change no state. With drafted tokens, draw for each position in turn, accept what is
kept and leave the rest alone: nothing has to be undone.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from itertools import repeat
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from engine.calls.check import CallCheck
from engine.calls.grammar import call_grammar, can_be_called
from engine.calls.grammar_state import GrammarState
from engine.chat_format import Marker
from engine.errors import EngineError
from engine.messages import ToolSchema
from engine.vocabulary import Vocabulary

_BEST = 256
"""How many of the best tokens are tried before all are."""

_SWITCH = re.compile(r"(?:\s|(?<!\w))to=(?P<to>[^\s<>]{0,128})\s?\Z")
"""The end of a reasoning that turns into another message, as the stream parser reads it."""

_SWITCH_BYTES = 1024
_REASONING, _ANSWER = "self", "user"


class _Stage(Enum):
    """What is being written."""

    HEADER = auto()
    REASONING = auto()
    ANSWER = auto()
    CALL = auto()
    BETWEEN = auto()
    """A message has ended and another must begin."""
    ENDED = auto()


class CallConstraint:
    """Follows one reply after the other. Close it: its grammars are native memory.

    A tool that the chat format cannot spell a call of, by its name or by a parameter it requires, cannot be
    addressed at all.
    """

    def __init__(self, vocabulary: Vocabulary, tools: Sequence[ToolSchema]) -> None:
        """Raises EngineError for a vocabulary without the format's markers."""
        self._vocabulary = vocabulary
        check = CallCheck(tools)
        self._tools = {
            tool.name: tool for tool in tools if check.resolve(tool.name) is tool and can_be_called(tool)
        }
        names = (_REASONING, _ANSWER, *self._tools)
        headers = {f" to={name}".encode(): name for name in names} | {b"": _ANSWER}
        self._first_headers: Mapping[bytes, str] = MappingProxyType(headers)
        self._next_headers: Mapping[bytes, str] = MappingProxyType(
            {b"assistant" + header: name for header, name in headers.items()}
        )
        self._start, self._message = self._marker(Marker.START), self._marker(Marker.MESSAGE)
        self._eom = self._marker(Marker.EOM)
        self._ends = {self._marker(Marker.EOT), self._marker(Marker.END_OF_TEXT)}
        self._texts = {
            token: marker.value.encode()
            for marker in Marker
            if (token := vocabulary.special(marker.value)) is not None
        }
        self._grammars: dict[str, GrammarState] = {}
        self.reset()

    def reset(self) -> None:
        """A reply begins, right after `<|start|>assistant`."""
        self._stage = _Stage.HEADER
        self._headers = self._first_headers
        self._written = b""
        self._grammar: GrammarState | None = None
        self._checked: int | None = None

    def allows(self, token: int) -> bool:
        """Whether this token may come next."""
        allowed = 0 <= token < self._vocabulary.size and self._may_follow(token)
        self._checked = token if allowed else None
        return allowed

    def mask(self, scores: npt.NDArray[np.float32]) -> None:
        """Set the scores of tokens that may not come next to minus infinity, in place.

        Where a few tokens are forbidden, exactly those. Where few are allowed, the best 256 are tried first,
        and all only if none of them is. Raises EngineError when no token may come.
        """
        if self._stage in (_Stage.REASONING, _Stage.ANSWER):
            forbidden = [token for token in (self._start, self._message) if not self._may_follow(token)]
            scores[forbidden] = -np.inf
            return
        count = min(_BEST, len(scores))
        kept = self._allowed(np.argpartition(scores, len(scores) - count)[len(scores) - count :])
        if not kept.size:
            kept = self._allowed(np.arange(len(scores)))
        if not kept.size:
            raise EngineError("No token of the vocabulary may come next.", "", "Choose another model file.")
        values = scores[kept]
        scores.fill(-np.inf)
        scores[kept] = values

    def accept(self, token: int) -> None:
        """This token comes next. Raises EngineError for one that may not."""
        if self._checked != token and not self.allows(token):
            raise EngineError("A token was taken that the chat format does not allow there.")
        self._checked = None
        match self._stage:
            case _ if token in self._ends:
                self._stage = _Stage.ENDED
            case _ if token == self._eom:
                self._stage = _Stage.BETWEEN
            case _ if token == self._start:
                self._stage, self._headers, self._written = _Stage.HEADER, self._next_headers, b""
            case _ if token == self._message:
                self._open(self._recipient())
            case _Stage.CALL if self._grammar is not None:
                self._grammar.accept(token)
            case _Stage.HEADER | _Stage.REASONING:
                piece = self._texts.get(token) or self._vocabulary.piece(token)
                self._written = (self._written + piece)[-_SWITCH_BYTES:]
            case _:
                pass

    def close(self) -> None:
        """Free the grammars."""
        for grammar in self._grammars.values():
            grammar.close()
        self._grammars.clear()
        self._grammar = None
        self._stage = _Stage.ENDED

    def _may_follow(self, token: int) -> bool:
        match self._stage:
            case _Stage.HEADER | _Stage.REASONING if token == self._message:
                may = self._recipient() is not None
            case _Stage.HEADER:
                written = self._written + self._vocabulary.piece(token)
                may = written != self._written and any(map(bytes.startswith, self._headers, repeat(written)))
            case _Stage.REASONING | _Stage.ANSWER:
                may = token not in (self._start, self._message)
            case _Stage.CALL if self._grammar is not None:
                is_end = token == self._eom or token in self._ends
                may = self._grammar.is_complete if is_end else self._grammar.allows(token)
            case _Stage.BETWEEN:
                may = token == self._start
            case _:
                may = False
        return may

    def _allowed(self, tokens: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Those of many tokens that may come next."""
        if self._stage is not _Stage.CALL or self._grammar is None:
            return tokens[[self._may_follow(token) for token in tokens.tolist()]]
        kept = self._grammar.allowed(tokens)
        if not self._grammar.is_complete:
            return kept
        return np.concatenate((kept, tokens[np.isin(tokens, [self._eom, *self._ends])]))

    def _recipient(self) -> str | None:
        """To whom a message would be that begins here, or None where none may."""
        if self._stage is _Stage.HEADER:
            return self._headers.get(self._written)
        match = _SWITCH.search(self._written.decode("utf-8", "replace"))
        name = match["to"] if match else None
        return name if name in self._tools or name in (_REASONING, _ANSWER) else None

    def _open(self, recipient: str | None) -> None:
        self._written = b""
        match recipient:
            case "self":
                self._stage = _Stage.REASONING
            case str() if recipient in self._tools:
                self._stage = _Stage.CALL
                self._grammar = self._grammar_of(recipient)
            case _:
                self._stage = _Stage.ANSWER

    def _grammar_of(self, name: str) -> GrammarState:
        """The grammar of a tool's calls, at its beginning."""
        if (grammar := self._grammars.get(name)) is not None:
            grammar.restart()
            return grammar
        self._grammars[name] = GrammarState(self._vocabulary, call_grammar(self._tools[name]))
        return self._grammars[name]

    def _marker(self, marker: Marker) -> int:
        token = self._vocabulary.special(marker.value)
        if token is None:
            raise EngineError(
                f"The model's vocabulary lacks {marker.value}.", "", "Choose another model file."
            )
        return token
