import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.base import FileChange, Result
from tools.diff import DiffTool
from tools.edit import EditTool
from tools.list_files import ListTool
from tools.outline import OutlineTool
from tools.plan import PlanTool
from tools.read import ReadTool
from tools.registry import Registry
from tools.run_command import RunTool
from tools.run_tests import TestTool
from tools.search import SearchTool
from tools.write import WriteTool

PARAMETERS = {
    "read": '{"path": "string", "start": "integer", "end": "integer"} path',
    "list": '{"path": "string", "glob": "string"} ',
    "search": '{"pattern": "string", "path": "string", "glob": "string"} pattern',
    "outline": '{"path": "string"} path',
    "write": '{"path": "string", "content": "string"} path content',
    "edit": '{"path": "string", "old": "string", "new": "string", "all": "boolean"} path old new',
    "test": '{"target": "string"} ',
    "run": '{"command": "string", "timeout": "number"} command',
    "plan": '{"items": "array"} items',
    "diff": "{} ",
}


@pytest.fixture
def registry(workspace, shell):
    alone = [tool(workspace) for tool in (ReadTool, ListTool, SearchTool, OutlineTool, WriteTool, EditTool)]
    return Registry([*alone, TestTool(workspace, shell), RunTool(shell), PlanTool(), DiffTool(lambda: ())])


def test_schemas_are_short_and_in_the_declared_order(registry):
    found = {}
    for name, description, parameters in registry.schemas():
        assert description == description.strip() != ""
        assert parameters["type"] == "object"
        assert set(parameters) <= {"type", "properties", "required"}
        types = {key: inner["type"] for key, inner in parameters["properties"].items()}
        found[name] = f"{json.dumps(types)} {' '.join(parameters.get('required', []))}"
    assert found == PARAMETERS
    assert list(found) == list(PARAMETERS)


def test_a_whole_schema_as_the_model_reads_it(registry):
    schemas = {one.name: one.parameters for one in registry.schemas()}
    assert json.dumps(schemas["read"]) == (
        '{"type": "object", "properties": {"path": {"type": "string"}, "start": {"type": "integer"}, '
        '"end": {"type": "integer"}}, "required": ["path"]}'
    )
    assert json.dumps(schemas["plan"]) == (
        '{"type": "object", "properties": {"items": {"type": "array", "items": {"type": "object", '
        '"properties": {"text": {"type": "string"}, "status": {"type": "string"}}, '
        '"required": ["text", "status"]}}}, "required": ["items"]}'
    )


def test_arguments_are_checked_with_words_for_each_problem(registry):
    result = registry.arguments("write", {"path": 3, "x": 1})
    assert isinstance(result, Result)
    assert result.error == "invalid_arguments"
    assert result.for_model == (
        "Invalid arguments for write: path: input should be a valid string. content is missing. "
        "x is not a parameter."
    )
    unknown = registry.arguments("rm", {})
    assert isinstance(unknown, Result)
    assert unknown.error == "unknown_tool"
    assert not isinstance(registry.arguments("diff", {}), Result)
    assert registry.get("rm") is None
    assert registry.get("run").name == "run"


def test_two_tools_of_one_name_are_a_mistake():
    with pytest.raises(ValueError, match="plan"):
        Registry([PlanTool(), PlanTool()])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=5
)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["plan", "diff"]), st.dictionaries(st.sampled_from(["items", "x"]), JSON))
def test_any_arguments_give_a_model_or_an_error(name, raw):
    checked = Registry([PlanTool(), DiffTool(lambda: ())]).arguments(name, raw)
    assert isinstance(checked, Result) == bool(getattr(checked, "error", ""))


def test_a_plan_counts_what_is_done(call):
    tool = PlanTool()
    items = [
        {"text": "a\nb", "status": "done"},
        {"text": "c", "status": "active"},
        {"text": "d", "status": "pending"},
    ]
    result = call(tool, items=items)
    assert result.for_model == "Plan noted: 1 of 3 done."
    assert result.display.body == "[x] a b\n[>] c\n[ ] d"
    assert call(tool, items=[{"text": "a", "status": "later"}]).error == "invalid_arguments"
    assert call(tool, items=[]).error == "invalid_arguments"
    assert len(tool.items) == 3


def test_the_diff_shows_what_changed(call):
    changes = [
        FileChange("new", None, "x\n"),
        FileChange("a", "1\n2", "1\n3\n"),
        FileChange("same", "x", "x"),
    ]
    assert call(DiffTool(lambda: changes)).for_model == (
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"
        "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n\\ No newline at end of file\n+3"
    )
    assert call(DiffTool(lambda: [])).for_model == "No changes."


def test_a_long_diff_is_bounded(call):
    changes = [FileChange(f"f{n}", None, "x\n" * 4000) for n in range(20)]
    text = call(DiffTool(lambda: changes)).for_model
    assert len(text) < 21_000
    assert "[cut: " in text
