"""The languages an outline knows: their file names, their grammars, and what counts as a definition."""

from collections.abc import Callable
from dataclasses import dataclass

import tree_sitter_bash
import tree_sitter_c
import tree_sitter_cpp
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust
import tree_sitter_typescript

PYTHON = "(class_definition) @d (function_definition) @d"
JAVASCRIPT = """
(function_declaration) @d (generator_function_declaration) @d (class_declaration) @d
(method_definition) @d
(variable_declarator value: [(arrow_function) (function_expression) (class)]) @d
"""
TYPESCRIPT = (
    JAVASCRIPT
    + """
(abstract_class_declaration) @d (interface_declaration) @d (enum_declaration) @d (type_alias_declaration) @d
(internal_module) @d (module) @d (function_signature) @d (abstract_method_signature) @d
(public_field_definition value: (arrow_function)) @d
"""
)
C = """
(function_definition) @d
(struct_specifier name: (_) body: (_)) @d (union_specifier name: (_) body: (_)) @d
(enum_specifier name: (_) body: (_)) @d
(type_definition type: (_ body: (_))) @d
"""


@dataclass(frozen=True, slots=True)
class Language:
    """A grammar (`load` gives tree-sitter's pointer) and a query whose captures are the definitions."""

    name: str
    load: Callable[[], object]
    query: str
    endings: tuple[str, ...]


LANGUAGES = (
    Language("Python", tree_sitter_python.language, PYTHON, ("py", "pyi")),
    Language(
        "JavaScript",
        tree_sitter_javascript.language,
        JAVASCRIPT + "(field_definition value: (arrow_function)) @d",
        ("js", "mjs", "cjs", "jsx"),
    ),
    Language("TypeScript", tree_sitter_typescript.language_typescript, TYPESCRIPT, ("ts", "mts", "cts")),
    Language("TSX", tree_sitter_typescript.language_tsx, TYPESCRIPT, ("tsx",)),
    Language(
        "Go",
        tree_sitter_go.language,
        "(function_declaration) @d (method_declaration) @d (type_spec) @d (type_alias) @d",
        ("go",),
    ),
    Language(
        "Rust",
        tree_sitter_rust.language,
        "(function_item) @d (function_signature_item) @d (struct_item) @d (enum_item) @d (union_item) @d "
        "(trait_item) @d (impl_item) @d (mod_item body: (_)) @d (macro_definition) @d (type_item) @d",
        ("rs",),
    ),
    Language("C", tree_sitter_c.language, C, ("c", "h")),
    Language(
        "C++",
        tree_sitter_cpp.language,
        C + "(class_specifier body: (_)) @d (namespace_definition) @d",
        ("cc", "cpp", "cxx", "hh", "hpp", "hxx"),
    ),
    Language(
        "Java",
        tree_sitter_java.language,
        "(class_declaration) @d (interface_declaration) @d (enum_declaration) @d (record_declaration) @d "
        "(annotation_type_declaration) @d (method_declaration) @d (constructor_declaration) @d",
        ("java",),
    ),
    Language("Bash", tree_sitter_bash.language, "(function_definition) @d", ("sh", "bash", "bats")),
)


def language_of(file_name: str) -> Language | None:
    """The language of a file, by the ending of its name."""
    ending = file_name.rpartition(".")[2].lower()
    return next((one for one in LANGUAGES if ending in one.endings), None)


def names() -> tuple[str, ...]:
    """The languages by name."""
    return tuple(one.name for one in LANGUAGES)
