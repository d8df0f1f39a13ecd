"""How people ask: wishes to mend a project, small talk, and what the demonstration model cannot do."""

import random

_MEND = (
    "Fix the failing test",
    "Fix the failing tests",
    "Please fix the failing test",
    "Make the tests pass",
    "The tests fail. Fix the bug",
    "The tests are red, make them green",
    "pytest fails, please fix it",
    "Find and fix the bug",
    "There is a bug in this project. Fix it",
    "Something is broken here, can you fix it?",
    "Can you make the test suite pass?",
    "A test fails. Find out why and fix it",
    "Run the tests and fix what fails",
    "Repair the code so that all tests pass",
    "Get the tests to pass",
    "My tests fail, help",
    "fix the bug",
    "Why does the test fail? Please fix it",
    "Debug this",
    "One of the tests is failing, please fix the code",
)
_MEND_FILE = (
    "Fix the bug in {path}",
    "There is a bug in {path}, fix it",
    "Please fix {path}",
    "{path} is broken, fix it",
    "The tests for {path} fail. Please fix them",
    "Find the bug in {path} and fix it",
)
_MEND_FUNCTION = (
    "Fix {name}",
    "{name} gives the wrong result, fix it",
    "The function {name} has a bug. Fix it",
    "test_{name} fails, please fix it",
    "Please fix the function {name}",
)
BEYOND = (
    "This demonstration model only knows small Python bugs. "
    "Start Glimmer with --model and the real model for that."
)
_TALK = {
    (
        "Hi",
        "Hello",
        "Hey",
        "Good morning",
        "hello there",
    ): "Hello. I am Glimmer. Ask me to fix a failing test.",
    (
        "Who are you?",
        "What are you?",
        "What is your name?",
    ): "I am Glimmer, with a small demonstration model. I fix small bugs in Python projects.",
    (
        "What can you do?",
        "Help",
        "How do you work?",
        "What can I ask?",
    ): "I run the tests, find a small bug, mend it and run the tests again. Ask me to fix the failing test.",
    (
        "Write a web server",
        "Build a game",
        "Translate this to French",
        "Explain quantum physics",
        "Write a poem",
        "Refactor everything",
        "Add a login page",
        "What is the capital of France?",
        "Write documentation",
        "Set up a database",
        "Make a website",
        "Write me an essay",
    ): BEYOND,
}
THANKS = ("Thanks", "Thank you", "Great, thanks!", "Nice", "Well done")
WELCOME = "You are welcome."
WHAT = ("What did you change?", "What was wrong?", "Explain the fix", "What was the bug?")
NOTES = (
    "not this file",
    "leave it as it is",
    "do not touch that",
    "I will do it myself",
    "wait",
    "not now",
    "wrong line",
)


def _dressed(rng: random.Random, wish: str) -> str:
    if rng.random() < 0.25:
        wish = wish[0].lower() + wish[1:]
    if wish[-1] not in "?!." and rng.random() < 0.6:
        wish += rng.choice((".", ".", "!"))
    return wish


def mend(rng: random.Random) -> str:
    """A wish that names nothing."""
    return _dressed(rng, rng.choice(_MEND))


def mend_file(rng: random.Random, path: str) -> str:
    """A wish that names a file."""
    return _dressed(rng, rng.choice(_MEND_FILE).format(path=path))


def mend_function(rng: random.Random, name: str) -> str:
    """A wish that names a function."""
    return _dressed(rng, rng.choice(_MEND_FUNCTION).format(name=name))


def talk(rng: random.Random) -> tuple[str, str]:
    """A message that is no wish to mend, and the answer."""
    asked = rng.choice(list(_TALK))
    return _dressed(rng, rng.choice(asked)), _TALK[asked]
