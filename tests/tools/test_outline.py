import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.outline import OutlineTool
from tools.outline_languages import LANGUAGES
from tools.outline_parse import definitions

SOURCES = {
    "a.py": (
        "@dec\nclass Cart(Base):\n    async def total(\n        self, a=1\n    ) -> int:\n"
        "        def inner(): ...\n",
        "2 class Cart(Base)\n  3 async def total( self, a=1 ) -> int\n    6 def inner()",
    ),
    "a.js": (
        "export default class A extends B {\n  m(a, b) { }\n}\nconst f = async (a) => a\nfunction* g() {}\n",
        "1 class A extends B\n  2 m(a, b)\n4 f = async (a)\n5 function* g()",
    ),
    "a.ts": (
        "interface I { a(): void }\ntype T = string\nnamespace N { function q() {} }\n",
        "1 interface I\n2 type T = string\n3 namespace N\n  3 function q()",
    ),
    "a.tsx": ("export const C = (p: P) => <div/>\n", "1 C = (p: P)"),
    "a.go": (
        "package x\ntype Cart struct {\n a int\n}\nfunc (c *Cart) Total(a int) int {\n return 1\n}\n",
        "2 type Cart struct\n5 func (c *Cart) Total(a int) int",
    ),
    "a.rs": (
        "pub struct A { x: u32 }\nimpl A {\n    pub fn new(x: u32) -> Self { A { x } }\n}\n",
        "1 pub struct A\n2 impl A\n  3 pub fn new(x: u32) -> Self",
    ),
    "a.c": (
        "static int *f(int a,\n  int b) {\n return 0;\n}\ntypedef struct { int b; } T;\n",
        "1 static int *f(int a, int b)\n5 typedef T",
    ),
    "a.cpp": (
        "namespace n {\nclass A : public B {\n  int f() const { return 1; }\n};\n}\n",
        "1 namespace n\n  2 class A : public B\n    3 int f() const",
    ),
    "A.java": (
        "@Deprecated\npublic class A extends B {\n  @Override\n  public int total(int a) { return 1; }\n}\n",
        "2 public class A extends B\n  4 public int total(int a)",
    ),
    "a.sh": ("foo() {\n echo\n}\nfunction bar { echo; }\n", "1 foo()\n4 function bar"),
}


@pytest.fixture
def outline(workspace):
    return OutlineTool(workspace)


@pytest.mark.parametrize("name", SOURCES)
def test_each_language_has_its_outline(root, outline, call, name):
    source, expected = SOURCES[name]
    (root / name).write_text(source)
    assert call(outline, path=name).for_model == expected


def test_every_language_is_tried_above():
    tried = {name.rpartition(".")[2] for name in SOURCES}
    assert all(tried & set(language.endings) for language in LANGUAGES)


def test_what_has_no_outline(root, outline, call):
    (root / "a.zig").touch()
    (root / "a.py").write_text("x = 1\n")
    (root / "b.py").write_bytes(b"\0")
    assert call(outline, path="a.zig").error == "unsupported"
    assert "Python" in call(outline, path="a.zig").for_model
    assert call(outline, path="a.py").for_model == "No definitions in a.py."
    assert call(outline, path="b.py").error == "binary"
    assert call(outline, path="c.py").error == "not_found"
    with (root / "d.py").open("wb") as file:
        file.truncate(1 << 30)
    assert call(outline, path="d.py").error == "too_large"


def test_a_broken_file_gives_what_can_be_recognised(root, outline, call):
    (root / "a.py").write_text("def good():\n    pass\n\ndef broken(:\n\nclass Fine:\n    pass\n")
    text = call(outline, path="a.py").for_model
    assert "1 def good()" in text
    assert "class Fine" in text


def test_deep_nesting_and_many_definitions_are_bounded(root, outline, call):
    (root / "deep.js").write_text("function f() {" * 5000)
    assert not call(outline, path="deep.js").is_error
    (root / "many.py").write_text("def f(): ...\n" * 1000)
    lines = call(outline, path="many.py").for_model.splitlines()
    assert len(lines) == 401
    assert lines[-1] == "[cut: 600 more definitions; use search]"


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(LANGUAGES), st.text("ab(){}:;=>\n \"'<def class", max_size=80))
def test_any_text_has_an_outline_with_lines_in_order(language, text):
    found = definitions(language, text)
    assert all(1 <= one.line <= text.count("\n") + 1 for one in found)
