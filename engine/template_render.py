"""Renders one chat template, as a program of its own: `python -I template_render.py < job.json`.

A template comes with a model file and is untrusted. It is rendered in jinja's sandbox, in a process that
has little memory, little time and nothing to lose. The job is `{"template": ..., "variables": {...}}`, the
answer `{"text": ...}` or `{"error": ...}`. It imports nothing of Glimmer.
"""

import json
import sys
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

CPU_SECONDS = 3
MEMORY_BYTES = 512 * 2**20
OUTPUT_CHARACTERS = 200_000


class TemplateRefusal(Exception):
    """What a template itself raises."""


def render(template: str, variables: dict[str, Any]) -> str:
    """The template's text. Raises whatever the template makes jinja raise."""
    environment: Any = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    written: list[str] = []
    length = 0
    for chunk in environment.from_string(template).generate(variables):
        written.append(chunk)
        length += len(chunk)
        if length > OUTPUT_CHARACTERS:
            raise TemplateRefusal(f"it writes more than {OUTPUT_CHARACTERS} characters")
    return "".join(written)


def limit_this_process() -> None:
    """Bound the time and the memory of this process, where the system can."""
    try:
        import resource
    except ImportError:
        return
    for kind, limit in ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MEMORY_BYTES)):
        try:
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError):
            continue


def main() -> None:
    """Read the job, answer it."""
    job = json.loads(sys.stdin.buffer.read())
    limit_this_process()
    try:
        answer = {"text": render(job["template"], job["variables"])}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"[:500]}
    sys.stdout.write(json.dumps(answer))


def _to_json(value: Any, indent: int | None = None, **_options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise TemplateRefusal(message)


if __name__ == "__main__":
    main()
