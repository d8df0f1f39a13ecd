"""The command line: what was asked for, and which way in. Heavy imports wait until they are needed."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from glimmer_tui.options import Flags
    from glimmer_tui.pictures.outgoing import Outgoing

OK, FAILED, USAGE, NO_MODEL, UNANSWERED, INTERRUPTED = 0, 1, 2, 3, 4, 130

MODES = ("read-only", "ask", "auto-edit", "auto")
STRENGTHS = ("low", "medium", "high", "xhigh")

_EPILOG = """\
commands (a folder that is itself called so: glimmer ./demo):
  glimmer demo [--dir D] [--no-open]
                     write a small Python project with a bug into a new folder and open it
  glimmer doctor     what Glimmer finds on this machine, and what to do where something lacks
  glimmer bench [--quick] [--json]
                     measure how fast the model is here

exit codes:
  0    done
  1    the turn failed
  2    wrong usage, or a settings file that cannot be used
  3    the model cannot be used
  4    with -p: something needed approval and nobody could give it (see --mode)
  130  interrupted
"""


class _Parser(argparse.ArgumentParser):
    """Ends with the documented code for wrong usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}\nTry {self.prog} --help.\n")


def run(arguments: Sequence[str]) -> int:
    """Do what the command line asks for; the value is the exit code."""
    try:
        if arguments[:1] == ["demo"]:
            return _demo(_demo_parser().parse_args(arguments[1:]))
        if arguments[:1] == ["doctor"]:
            return _doctor(_tool_parser("doctor", "Say what Glimmer finds here.").parse_args(arguments[1:]))
        if arguments[:1] == ["bench"]:
            return _bench(_bench_parser().parse_args(arguments[1:]))
        return _main(_parser().parse_args(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output went away. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _main(parsed: argparse.Namespace) -> int:
    if parsed.version:
        sys.stdout.write(f"glimmer {_version()}\n")
        return OK
    folder = Path(parsed.folder)
    if not folder.is_dir():
        return _complain(f"{folder} is not a folder.")
    if parsed.prompt is not None and not parsed.prompt.strip():
        return _complain("The prompt after -p is empty.")
    if parsed.output and parsed.prompt is None:
        return _complain("--output goes with -p.")
    if parsed.image and parsed.prompt is None:
        return _complain("--image goes with -p. On the screen, type /image PATH.")
    return _open(folder, parsed)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("glimmer-code")
    except PackageNotFoundError:
        return "(not installed, run from its source)"


def _demo(parsed: argparse.Namespace) -> int:
    from glimmer_tui.demo import DemoRefused, write_demo

    try:
        folder = write_demo(parsed.dir, Path.cwd())
    except DemoRefused as problem:
        return _complain(str(problem))
    sys.stdout.write(f"A sample project is in {folder}. Ask: Fix the failing test.\n")
    sys.stdout.flush()
    return OK if parsed.no_open else _open(folder, parsed)


def _doctor(parsed: argparse.Namespace) -> int:
    from engine.errors import ModelError
    from glimmer_tui.config import ConfigError
    from glimmer_tui.doctor import as_text, examine
    from glimmer_tui.options import Flags, resolve
    from glimmer_tui.wiring import model_to_load

    try:
        model, options = model_to_load(resolve(Path.cwd(), Flags(model=parsed.model)))
    except ConfigError as problem:
        return _complain(str(problem))
    except ModelError as problem:
        return _complain(str(problem), NO_MODEL)
    findings = list(examine(model, options))
    sys.stdout.write(as_text(findings))
    return FAILED if any(finding.mark == "missing" for finding in findings) else OK


def _bench(parsed: argparse.Namespace) -> int:
    from engine.errors import EngineError, ModelError
    from glimmer_tui.bench import as_json, as_table, run_bench
    from glimmer_tui.config import ConfigError
    from glimmer_tui.options import Flags, resolve
    from glimmer_tui.wiring import model_to_load, tool_schemas

    try:
        model, options = model_to_load(resolve(Path.cwd(), Flags(model=parsed.model)))
        report = run_bench(model, options, tool_schemas(Path.cwd()), parsed.quick)
    except ConfigError as problem:
        return _complain(str(problem))
    except ModelError as problem:
        return _complain(str(problem), NO_MODEL)
    except EngineError as problem:
        return _complain(str(problem), FAILED)
    sys.stdout.write(as_json(report) + "\n" if parsed.json else as_table(report))
    return OK


def _open(folder: Path, parsed: argparse.Namespace) -> int:
    """Build a session for the folder and give it to the screen or to a script."""
    from engine.errors import ModelError
    from glimmer_tui.config import ConfigError
    from glimmer_tui.options import FolderRefused, resolve
    from glimmer_tui.wiring import build_session

    try:
        options = resolve(folder, _flags(parsed))
        prompt = None if parsed.prompt is None else _prompt(parsed.prompt, parsed.image, options.root)
        session = build_session(options)
    except _Unusable as problem:
        return _complain(str(problem))
    except (ConfigError, FolderRefused) as problem:
        return _complain(str(problem))
    except ModelError as problem:
        return _complain(str(problem), NO_MODEL)
    if prompt is not None:
        from glimmer_tui.headless import run_headless

        return run_headless(session, _with_input(prompt), parsed.output or "text")
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        return _complain('The screen needs a terminal. In a script, use glimmer -p "...".')
    from glimmer_tui.app import GlimmerApp

    GlimmerApp(session, options.theme, root=options.root).run()
    return OK


def _flags(parsed: argparse.Namespace) -> "Flags":
    from glimmer_tui.options import Flags

    return Flags(
        model=parsed.model,
        mode=parsed.mode,
        reasoning=parsed.reasoning,
        seed=parsed.seed,
        temperature=parsed.temperature,
        max_steps=parsed.max_steps,
        trust=parsed.trust,
    )


class _Unusable(Exception):
    """A picture that cannot be used. The message is for the person."""


def _prompt(written: str, images: Sequence[Path], root: Path) -> "str | Outgoing":
    """The prompt with its pictures, where it has any. Raises _Unusable."""
    from glimmer_tui.pictures.names import may_name_pictures

    if not images and not may_name_pictures(written):
        return written
    from glimmer_tui.pictures.attached import PictureError, picture_from_file
    from glimmer_tui.pictures.outgoing import outgoing

    try:
        message = outgoing(written, [picture_from_file(path.expanduser()) for path in images], root)
    except PictureError as problem:
        raise _Unusable(str(problem)) from problem
    return message if message.pictures else message.text


def _with_input(prompt: "str | Outgoing") -> "str | Outgoing":
    """The prompt, and behind it what was piped in, in which no picture is looked for."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return prompt
    piped = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not piped.strip():
        return prompt
    tail = f"\n\n<input>\n{piped.rstrip()}\n</input>"
    if isinstance(prompt, str):
        return prompt + tail
    return replace(prompt, typed=prompt.typed + tail, text=prompt.text + tail)


def _complain(words: str, code: int = USAGE) -> int:
    for line in words.splitlines():
        sys.stderr.write(f"glimmer: {line}\n")
    return code


def _parser() -> _Parser:
    parser = _Parser(
        prog="glimmer",
        description="A coding agent for the terminal that runs on your own machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "folder", nargs="?", default=".", metavar="DIR", help="the project (default: this folder)"
    )
    parser.add_argument(
        "-p", "--prompt", metavar="TEXT", help="do this and leave; what is piped in goes with it"
    )
    parser.add_argument(
        "--output", choices=("text", "json", "jsonl"), help="with -p: what is written (default text)"
    )
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="with -p: show the model this picture (may be repeated; @PATH in the prompt does the same)",
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    _add_common(parser)
    return parser


def _demo_parser() -> _Parser:
    parser = _Parser(
        prog="glimmer demo", description="Write a sample project and open it.", allow_abbrev=False
    )
    parser.add_argument(
        "--dir", type=Path, metavar="D", help="a new or empty folder (default: ./glimmer-demo)"
    )
    parser.add_argument("--no-open", action="store_true", help="only write the files")
    parser.set_defaults(prompt=None, output=None, image=[])
    _add_common(parser)
    return parser


def _tool_parser(name: str, description: str) -> _Parser:
    parser = _Parser(prog=f"glimmer {name}", description=description, allow_abbrev=False)
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FILE",
        help="a GGUF file (default: that of the settings, or the bundled)",
    )
    return parser


def _bench_parser() -> _Parser:
    parser = _tool_parser("bench", "Measure how fast the model is on this machine.")
    parser.add_argument("--quick", action="store_true", help="short contexts only, in less than a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--model",
        type=Path,
        metavar="FILE",
        help="a GGUF file (default: that of the settings, or the bundled)",
    )
    add(
        "--mode", choices=MODES, help="what may happen without asking (default: that of the settings, or ask)"
    )
    add("--reasoning", choices=STRENGTHS, help="how much the model thinks first")
    add("--seed", type=_seed, metavar="N", help="draw the same tokens every time")
    add("--temperature", type=_temperature, metavar="T", help="0 takes the likeliest token")
    add(
        "--max-steps",
        type=_steps,
        metavar="N",
        help="model steps of one turn (default: that of the settings, or 50)",
    )
    parser.add_argument(
        "--trust", action="store_true", help="use this folder's AGENTS.md and settings from now on"
    )


def _seed(text: str) -> int:
    return _between(_whole(text), 0, 2**32 - 1)


def _steps(text: str) -> int:
    return _between(_whole(text), 1, 1000)


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None
    if not 0 <= value <= 5:
        raise argparse.ArgumentTypeError("must lie between 0 and 5")
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None


def _between(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"must lie between {least} and {most}")
    return value
