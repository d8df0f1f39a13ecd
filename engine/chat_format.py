"""The chat format of Muse Glimmer: a conversation as token markers, plain text and pictures.

A message is `<|start|>ROLE[ to=RECIPIENT]<|message|>BODY` closed by `<|eom|>` (the same role goes on) or
`<|eot|>` (the turn ends). Everything is rendered to pieces, not to one string: a `Marker` becomes its
token id, and a plain piece is tokenized as ordinary text. So a file, a command's output or a tool's
description that spells `<|eot|>` stays text and cannot end a message.

The order of a system block is: text, reasoning strength, tools, valid recipients.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.calls.atem import call_block, to_json
from engine.messages import Image, Message, Reasoning, Strength, Text, ToolCall, ToolResult, ToolSchema


class Marker(StrEnum):
    """A special token of the format; its value is the token's text in the vocabulary.

    A marker equals only itself: a plain string that spells one is foreign text.
    """

    BOS = "<|begin_of_text|>"
    END_OF_TEXT = "<|end_of_text|>"
    START = "<|start|>"
    MESSAGE = "<|message|>"
    EOM = "<|eom|>"
    EOT = "<|eot|>"
    PATCH = "<|patch|>"
    IMAGE_START = "<|image_start|>"
    IMAGE_END = "<|image_end|>"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class ImagePiece:
    """The place of a picture; the vision encoder fills it, and as text it reads `<|patch|>`."""

    image: Image


Piece = Marker | str | ImagePiece

GENERATION_PROMPT: tuple[Piece, ...] = (Marker.START, "assistant")
"""What the model continues; it writes ` to=RECIPIENT<|message|>` itself."""

_TOOLS_INTRO = """\
In this environment you have access to a set of tools you can use to answer the user's question.

You can invoke a function by writing a "<atem:function_calls>" block like the following:
<atem:function_calls>
<atem:invoke name="$FUNCTION_NAME">
<atem:parameter name="$PARAMETER_NAME">$PARAMETER_VALUE</atem:parameter>
...
</atem:invoke>
</atem:function_calls>

String and scalar parameters should be specified as is, while lists and objects should use JSON format. \
Note that spaces for string values are not stripped. The output is not expected to be valid XML and is \
parsed with regular expressions.
Here are the functions available in JSONSchema format:
"""

_TOOLS_EXAMPLE = """\
Here's an example of how to call a function in the tool set:
(If the tool namespace is not specified, invoke the function directly as `example_function_name` rather \
than `example_tool_name.example_function_name`)

to=example_tool_name.example_function_name

<atem:function_calls>
<atem:invoke name="example_tool_name.example_function_name">
<atem:parameter name="example_parameter_1">value_1</atem:parameter>
<atem:parameter name="example_parameter_2">This is the value for the second parameter
that can span
"multiple" lines
</atem:parameter>
</atem:invoke>
</atem:function_calls>"""

_DIRECTIVE = "reasoning strength"
_DIRECTIVE_SYNONYMS = {
    "Reasoning effort": "Reasoning strength",
    "Reasoning Effort": "Reasoning Strength",
    "reasoning effort": "reasoning strength",
    "REASONING EFFORT": "REASONING STRENGTH",
}


def system_pieces(text: str, tools: Sequence[ToolSchema], strength: Strength) -> tuple[Piece, ...]:
    """The whole system block, from BOS to EOT.

    A text that already states a reasoning strength keeps its own, and `strength` is not written; an
    "effort" in it is renamed to "strength", the word the model was trained on.
    """
    for written, trained in _DIRECTIVE_SYNONYMS.items():
        text = text.replace(written, trained)
    sections = [text]
    if _DIRECTIVE not in text.lower():
        sections.append(f"Reasoning strength: {strength}.")
    if tools:
        sections.append(_tool_definitions(tools))
    sections.append(_valid_recipients(tools))
    return _joined([Marker.BOS, Marker.START, "system", Marker.MESSAGE, "\n\n".join(sections), Marker.EOT])


def message_pieces(message: Message) -> tuple[Piece, ...]:
    """A user, tool or assistant message, START to EOT of its last part.

    An assistant message is written as one message of the format for each part, in order: reasoning to
    itself, text to the user, a call to the tool. A tool message is one message of the format for each
    result; text and pictures after a result belong to it. Raises ValueError for a part that its role
    cannot hold.
    """
    match message.role:
        case "user":
            return _joined([Marker.START, "user", Marker.MESSAGE, *_content(message), Marker.EOT])
        case "tool":
            return _joined(_tool_output(message))
        case "assistant":
            return _joined(_assistant(message))
        case "system":
            raise ValueError("the system message is rendered by system_pieces, with the tools")


def render_text(pieces: Iterable[Piece]) -> str:
    """The pieces as one string, as a chat template would write them. For people and comparisons only."""
    return "".join(Marker.PATCH if isinstance(piece, ImagePiece) else piece for piece in pieces)


def _namespaces(tools: Sequence[ToolSchema]) -> list[str]:
    return list(dict.fromkeys(tool.name.split(".")[0] for tool in tools))


def _tool_definitions(tools: Sequence[ToolSchema]) -> str:
    namespaces = "".join(to_json({"name": name, "description": ""}) + "\n" for name in _namespaces(tools))
    schemas = "\n".join(
        to_json({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        for tool in tools
    )
    return f"{_TOOLS_INTRO}// Tool metadata\n{namespaces}// Function schemas\n{schemas}\n\n{_TOOLS_EXAMPLE}"


def _valid_recipients(tools: Sequence[ToolSchema]) -> str:
    names = ["self", *(f"{name}.*" for name in _namespaces(tools)), "user"]
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"# Valid recipients: {quoted}."


def _content(message: Message) -> Iterator[Piece]:
    for part in message.parts:
        match part:
            case Text(text):
                yield text
            case Image():
                yield _picture(part)
            case _:
                raise ValueError(f"a {message.role} message cannot hold a {type(part).__name__}")


def _picture(image: Image) -> Piece:
    return f"[{image.expired}]" if image.expired else ImagePiece(image)


def _tool_output(message: Message) -> Iterator[Piece]:
    close: tuple[Piece, ...] = ()
    for part in message.parts:
        match part:
            case ToolResult(name=name):
                text = f"[{part.expired}]" if part.expired else part.text
                yield from close
                close = ("\n</tool_output>", Marker.EOT)
                yield from (
                    Marker.START,
                    f"tool {name}",
                    Marker.MESSAGE,
                    f'<tool_output name="{name}">\n{text}',
                )
            case Text(text) if close:
                yield text
            case Image() if close:
                yield _picture(part)
            case _:
                raise ValueError(f"a tool message cannot hold a {type(part).__name__} here")
    if not close:
        raise ValueError("a tool message needs a result")
    yield from close


def _assistant(message: Message) -> Iterator[Piece]:
    bodies = [body for part in message.parts if (body := _addressed(part))[1]] or [("user", "")]
    for index, (recipient, body) in enumerate(bodies):
        last = index == len(bodies) - 1
        yield from (Marker.START, f"assistant to={recipient}", Marker.MESSAGE, body)
        yield Marker.EOT if last else Marker.EOM


def _addressed(part: object) -> tuple[str, str]:
    """Whom an assistant's part is addressed to, and its body."""
    match part:
        case Reasoning(text):
            return "self", text
        case Text(text):
            return "user", text
        case ToolCall(name=name, arguments=arguments):
            return name, call_block(name, arguments)
        case _:
            raise ValueError(f"an assistant message cannot hold a {type(part).__name__}")


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """The pieces with neighbouring strings made one, so that they are tokenized as one."""
    joined: list[Piece] = []
    pending: list[str] = []
    for piece in pieces:
        if isinstance(piece, str) and not isinstance(piece, Marker):
            pending.append(piece)
            continue
        _flush(pending, joined)
        joined.append(piece)
    _flush(pending, joined)
    return tuple(joined)


def _flush(pending: list[str], joined: list[Piece]) -> None:
    if text := "".join(pending):
        joined.append(text)
    pending.clear()
