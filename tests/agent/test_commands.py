import pytest

from glimmer_tui.agent.commands import COMMANDS, Invocation, UnknownCommand, complete, parse


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_is_found_by_its_name(command) -> None:
    assert parse(command.name) == Invocation(command)
    assert parse(f"  {command.name}  now then \n") == Invocation(command, "now then")


@pytest.mark.parametrize(
    "text", ["", "hello", "/usr/bin/env is what?", "//", "/ help", "say /help", "/Users/me x"]
)
def test_a_message_is_no_command(text: str) -> None:
    assert parse(text) is None


def test_a_name_that_does_not_exist_is_told_apart_from_a_message() -> None:
    assert parse("/hlep") == UnknownCommand("/hlep")


def test_completion_offers_what_begins_alike() -> None:
    assert [command.name for command in complete("/re")] == ["/redo", "/reasoning"]
    assert complete("re") == ()
    assert complete("/") == COMMANDS
