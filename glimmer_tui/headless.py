"""One prompt without a screen: the events that a screen gets, as text, one JSON object, or JSON lines.

docs/headless.md describes the formats.
"""

import asyncio
import json
import signal
import sys
import unicodedata
from typing import TYPE_CHECKING, Literal, TextIO

from engine.protocol import Capabilities
from glimmer_tui.agent import events
from glimmer_tui.agent.events import Event
from glimmer_tui.agent.session import Session
from glimmer_tui.agent.sight import cannot_see
from glimmer_tui.headless_json import event_to_json
from glimmer_tui.report import OK, Report
from sandbox.actions import Decision

if TYPE_CHECKING:
    from glimmer_tui.pictures.outgoing import Outgoing

Output = Literal["text", "json", "jsonl"]

NOBODY = "Nobody is here to approve it. Do not try it again; say what is left to do."
"""The note the model gets with a declined call."""


def run_headless(session: Session, prompt: "str | Outgoing", output: Output) -> int:
    """Send the prompt, write what comes of it, and return the exit code. Approvals are declined.

    A prompt with pictures waits until it is known whether the model sees any.
    """
    return asyncio.run(_run(session, prompt, output))


async def _run(session: Session, prompt: "str | Outgoing", output: Output) -> int:
    report = Report()

    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        """The first Ctrl-C ends the turn in order, the second ends the program."""
        report.interrupted = True
        session.cancel()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        await session.start()
        if isinstance(prompt, str):
            session.submit(prompt)
        if report.interrupted:
            session.cancel()
        async for event in session.events():
            report.add(event)
            _write_event(event, report, output)
            match event:
                case events.ModelLoaded(model) if not isinstance(prompt, str):
                    if (refused := _submit(session, prompt, model)) is not None:
                        report.add(refused)
                        _write_event(refused, report, output)
                        break
                    if report.interrupted:
                        session.cancel()
                case events.ApprovalRequested():
                    session.reply(event.id, Decision("deny", NOBODY))
                case events.TurnFinished() | events.TurnFailed():
                    break
                case _:
                    pass
    finally:
        await session.close()
    _write_end(report, output)
    return report.exit_code


def _submit(session: Session, prompt: "Outgoing", model: Capabilities) -> events.TurnFailed | None:
    """Send a prompt with pictures, or say why not. Where it only names their files, the names are sent."""
    if model.vision:
        session.submit(prompt.text, [picture.image for picture in prompt.pictures])
    elif prompt.insists:
        what, _, todo = cannot_see(model.is_demo).partition(". ")
        return events.TurnFailed(f"{what}.", "", todo, "model")
    else:
        session.submit(prompt.typed)
    return None


def _write_event(event: Event, report: Report, output: Output) -> None:
    match output:
        case "jsonl":
            _write(sys.stdout, json.dumps(event_to_json(event)))
        case "text":
            line = _progress(event, report)
            if line:
                _write(sys.stderr, line)
        case "json":
            pass


def _write_end(report: Report, output: Output) -> None:
    if output == "json":
        _write(sys.stdout, json.dumps(report.to_json()))
    if output != "text":
        return
    if isinstance(report.end, events.TurnFinished) and report.end.answer:
        _write(sys.stdout, harmless(report.end.answer))
    if report.exit_code != OK and report.needed:
        _write(sys.stderr, f"Not approved, nobody was there to ask: {', '.join(report.needed)}")
        _write(sys.stderr, "Let it work with --mode auto-edit or --mode auto.")


def _progress(event: Event, report: Report) -> str:
    match event:
        case events.ToolFinished(call_id, _, display, error):
            mark = "failed" if error else "done"
            return harmless(f"{report.calls[call_id]['summary']}: {mark}, {display.title}")
        case events.Notice(text):
            return harmless(text)
        case events.TurnFailed(what, why, todo):
            return harmless("\n".join(part for part in (what, why, todo) if part))
        case events.TurnFinished(stop="length"):
            return "The answer is not whole: it reached its token limit."
        case _:
            return ""


def harmless(text: str) -> str:
    """Text that cannot drive a terminal: control and formatting characters are replaced."""
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t" or not unicodedata.category(character).startswith("C"):
        return character
    return "\N{REPLACEMENT CHARACTER}"


def _write(stream: TextIO, line: str) -> None:
    """One line, at once. A character the stream's encoding lacks is replaced."""
    encoding = stream.encoding or "utf-8"
    stream.write(line.encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()
