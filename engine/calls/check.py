"""From a call as the model wrote it to a call that can be run, or to words that tell the model why not."""

from collections.abc import Sequence

from engine.calls.arguments import describe_parameters, read_arguments
from engine.calls.atem import Invoke, parse_block
from engine.calls.schema import clip
from engine.messages import ToolCall, ToolSchema, new_id
from engine.protocol import CallProblem, ToolCallFailed, ToolCallReady

_PREFIXES = ("functions.", "function.", "tools.", "tool.")
_FORM = (
    '<atem:function_calls>\n<atem:invoke name="TOOL">\n'
    '<atem:parameter name="KEY">VALUE</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
)


class CallCheck:
    """Knows the tools there are."""

    def __init__(self, tools: Sequence[ToolSchema]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def resolve(self, name: str) -> ToolSchema | None:
        """The tool that a recipient or an invoke means, or None.

        Besides the tool's own name: `functions.NAME`, `NAME.*`, `NAME.NAME`, `NAME.PARAMETER`, and
        `NAMESPACE` or `NAMESPACE.*` where the namespace holds a single tool.
        """
        name = name.strip().strip("\"'`,;")
        for prefix in _PREFIXES:
            if name not in self._tools:
                name = name.removeprefix(prefix)
        name = name.removesuffix(".*")
        inside = [tool for tool in self._tools.values() if tool.name.startswith(f"{name}.")]
        if name not in self._tools and len(inside) == 1:
            return inside[0]
        while name and name not in self._tools:
            name = name.rpartition(".")[0]
        return self._tools.get(name)

    def check(self, invoke: Invoke, recipient: str) -> ToolCallReady | ToolCallFailed:
        """A call addressed to `recipient`; where the invoke names another known tool, that one is meant."""
        tool = self.resolve(invoke.name) or self.resolve(recipient)
        if tool is None:
            name = invoke.name or recipient
            return _failed(name, dict(invoke.parameters), "unknown_tool", self._no_such_tool(name))
        arguments, problems = read_arguments(invoke.parameters, tool.parameters)
        if not invoke.closed:
            problems = [f"the call was broken off before </atem:invoke>. Write it whole:\n{_FORM}\n"]
        if problems:
            return _failed(tool.name, arguments, "invalid_arguments", _misfit(tool, problems))
        return ToolCallReady(ToolCall(new_id(), tool.name, arguments))

    def without_block(self, recipient: str) -> ToolCallFailed:
        """A message addressed to a tool that holds no call."""
        tool = self.resolve(recipient)
        if tool is None:
            return _failed(recipient, {}, "unknown_tool", self._no_such_tool(recipient))
        problem = f"the message holds no call. Write one like this:\n{_FORM}\n"
        return _failed(tool.name, {}, "invalid_arguments", _misfit(tool, [problem]))

    def without_recipient(self, text: str) -> ToolCallFailed:
        """A call that was written into an answer or into reasoning, where it is only text."""
        invokes = parse_block(text[text.rfind("<atem:invoke") :])
        invoke = invokes[0] if invokes else Invoke("", (), closed=False)
        tool = self.resolve(invoke.name)
        name = tool.name if tool else invoke.name
        message = (
            "Nothing was run: the call had no recipient. A call inside an answer or inside reasoning is only "
            f"text. Write it as a message of its own, addressed to the tool with to={clip(name) or 'TOOL'}."
        )
        return _failed(name, dict(invoke.parameters), "no_recipient", message)

    def _no_such_tool(self, name: str) -> str:
        names = ", ".join(self._tools) or "none"
        return f'Nothing was run: there is no tool "{clip(name)}". The tools are: {names}.'


def _misfit(tool: ToolSchema, problems: Sequence[str]) -> str:
    return (
        f"Nothing was run: in the call of {tool.name}, {' Also, '.join(problems)} "
        f"Its parameters are: {describe_parameters(tool.parameters)}."
    )


def _failed(name: str, arguments: dict[str, object], problem: CallProblem, message: str) -> ToolCallFailed:
    return ToolCallFailed(ToolCall(new_id(), name, arguments), problem, message)
