"""A model file's own template against Glimmer's format."""

import pytest

from engine.chat_format import Marker, render_text, system_pieces
from engine.messages import ToolSchema
from engine.template_check import template_mismatch

BOS = Marker.BOS.value
WITH_TOOL = render_text(system_pieces("", [ToolSchema("t", "", {})], "low"))
INTRODUCTION = WITH_TOOL[WITH_TOOL.index("In this") : WITH_TOOL.index("// Tool metadata")]
EXAMPLE = WITH_TOOL[WITH_TOOL.index("Here's an example") : WITH_TOOL.index("\n\n# Valid")]

TEMPLATE = (
    """{{ bos_token }}{% set spaces = namespace(all=[]) %}
{%- for tool in tools if tool.function.name.split('.')[0] not in spaces.all -%}
{%- set spaces.all = spaces.all + [tool.function.name.split('.')[0]] -%}{%- endfor -%}
{%- macro value(v) -%}
{%- if v is none -%}null{%- elif v is boolean -%}{{ v | string | lower }}
{%- elif v is string or v is number -%}{{ v }}{%- else -%}{{ v | tojson }}{%- endif -%}
{%- endmacro -%}
{%- for m in messages -%}
{%- if m.role == 'system' -%}
{{- '<|start|>system<|message|>' + m.content + '\n\nReasoning strength: ' + reasoning_strength + '.\n\n' -}}
"""
    + f"{{% raw %}}{INTRODUCTION}// Tool metadata\n{{% endraw %}}"
    + """
{%- for name in spaces.all -%}{{ '{"name": "' + name + '", "description": ""}\n' }}{%- endfor -%}
{{- '// Function schemas' -}}
{%- for tool in tools -%}
{{ '\n{"name": ' + tool.function.name | tojson + ', "description": ' + tool.function.description | tojson
   + ', "parameters": ' + tool.function.parameters | tojson + '}' }}
{%- endfor -%}
{{- '\n\n' -}}"""
    + f"{{% raw %}}{EXAMPLE}{{% endraw %}}"
    + """
{{- '\n\n# Valid recipients: "self", ' -}}
{%- for name in spaces.all -%}{{ '"' + name + '.*", ' }}{%- endfor -%}
{{- '"user".<|eot|>' -}}
{%- elif m.role == 'user' -%}
{{- '<|start|>user<|message|>' + m.content + '<|eot|>' -}}
{%- elif m.role == 'tool' -%}
{{- '<|start|>tool ' + m.name + '<|message|><tool_output name="' + m.name + '">\n' -}}
{{- m.content + '\n</tool_output><|eot|>' -}}
{%- else -%}
{%- if m.reasoning_content -%}
{{- '<|start|>assistant to=self<|message|>' + m.reasoning_content + '<|eom|>' -}}
{%- endif -%}
{%- for call in m.tool_calls -%}
{{- '<|start|>assistant to=' + call.function.name + '<|message|><atem:function_calls>\n' -}}
{{- '<atem:invoke name="' + call.function.name + '">\n' -}}
{%- for k, v in call.function.arguments.items() -%}
{{- '<atem:parameter name="' + k + '">' + value(v) + '</atem:parameter>\n' -}}
{%- endfor -%}
{{- '</atem:invoke>\n</atem:function_calls><|eot|>' -}}
{%- else -%}
{{- '<|start|>assistant to=user<|message|>' + m.content + '<|eot|>' -}}
{%- endfor -%}
{%- endif -%}
{%- endfor -%}
{%- if strftime_now is defined -%}{{ strftime_now('%Y') }}{%- endif -%}
{%- if add_generation_prompt -%}{{ '<|start|>assistant' }}{%- endif -%}
"""
)


def test_a_template_that_writes_the_same_has_no_mismatch() -> None:
    assert template_mismatch(TEMPLATE, BOS) is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (" to=user<", " to=\x1b[2Juser<", ["at character", r"to=\x1b[2J", "Glimmer writes", "to=user<"]),
        ("Reasoning strength: ", "Reasoning effort: ", ["effort", "strength"]),
        ("call.function.name + '\">", "'x' + call.function.name + '\">", ["xread"]),
        ("{%- if add_generation_prompt -%}", "{%- if false -%}", ["character"]),
        ("v | tojson", "v | string", ["'x'"]),
    ],
)
def test_the_first_difference_is_shown(old: str, new: str, words: list[str]) -> None:
    assert old in TEMPLATE
    sentence = template_mismatch(TEMPLATE.replace(old, new), BOS)
    assert sentence is not None and all(word in sentence for word in words)
    assert sentence.isprintable()


def test_another_first_token_is_a_difference() -> None:
    sentence = template_mismatch(TEMPLATE, "<s>")
    assert sentence is not None and "character 1:" in sentence


@pytest.mark.parametrize(
    "template",
    [
        "{{ raise_exception('no\x1b[31m roles') }}",
        "{% if %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ 1 // 0 }}",
        "{{ missing.attribute }}",
        "{{ 'x' * 10 ** 12 }}",
        "{% for a in range(99999) %}{{ 'xxxxxxxxxx' }}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include 'x' %}",
        "x" * 1_000_001,
        "(" * 100_000,
        "{{" + "(" * 20_000,
    ],
    ids=lambda template: template[:30],
)
def test_a_hostile_or_broken_template_yields_a_sentence(template: str) -> None:
    sentence = template_mismatch(template, BOS)
    assert sentence is not None and sentence.isprintable()
    assert len(sentence) < 500
