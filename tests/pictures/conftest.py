"""A desktop to paste from and to photograph: the real programs where this machine has them, else small fakes.

The fakes answer the same arguments, so the code under test runs the same way on every machine.
"""

import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

DESKTOP_NAMES = ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY", "WSL_DISTRO_NAME", "WSL_INTEROP")


@dataclass(frozen=True)
class Clipboard:
    """A clipboard: `copy` fills it with one kind, `is_real` tells whether a real program answers."""

    copy: Callable[[str, bytes], None]
    is_real: bool


def encoded(picture: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def opened(data: bytes) -> Image.Image:
    with Image.open(BytesIO(data)) as picture:
        picture.load()
        return picture


@pytest.fixture(autouse=True)
def _no_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DESKTOP_NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for fake programs; nothing else is on the PATH that Glimmer searches."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put_program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    path.chmod(0o755)


def _fake_clipboard(folder: Path, name: str, listing: str) -> Clipboard:
    """A program that prints the content of its one kind; `listing` is the word that asks for the kinds."""
    held = folder / "held"
    held.mkdir()
    put_program(
        folder,
        name,
        f'cd "{held}" || exit 3\n'
        "kind=\n"
        "for word; do case $last in -t|--type) kind=$word;; esac; "
        f'[ "$word" = "{listing}" ] && kind={listing}; last=$word; done\n'
        "[ -e kind ] || { echo nothing is copied >&2; exit 1; }\n"
        f'[ "$kind" = "{listing}" ] && exec cat kind\n'
        '[ "$kind" = "$(cat kind)" ] || exit 1\n'
        "exec cat data",
    )

    def copy(kind: str, data: bytes) -> None:
        (held / "kind").write_text(kind)
        (held / "data").write_bytes(data)

    return Clipboard(copy, False)


def _wait_for(offered: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not offered():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _lists(command: tuple[str, ...], kind: str) -> Callable[[], bool]:
    def offered() -> bool:
        done = subprocess.run(command, capture_output=True, check=False, timeout=20)
        return kind.encode() in done.stdout.split()

    return offered


@pytest.fixture(scope="session")
def x_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of an X display, or "" where there is no X server."""
    if shutil.which("Xvfb") is None:
        yield ""
        return
    receive, send = os.pipe()
    log = tmp_path_factory.mktemp("x") / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            ("Xvfb", "-displayfd", str(send), "-screen", "0", "320x200x24", "-nolisten", "tcp"),
            pass_fds=(send,),
            stdout=output,
            stderr=output,
        )
    os.close(send)
    try:
        ready, _, _ = select.select([receive], [], [], 30)
        number = os.read(receive, 16).decode().strip() if ready else ""
        yield f":{number}" if number else ""
    finally:
        os.close(receive)
        server.terminate()
        server.wait(20)


@pytest.fixture
def x11(
    x_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Clipboard:
    monkeypatch.setenv("DISPLAY", x_server or ":99")
    xclip = shutil.which("xclip")
    if not x_server or xclip is None:
        return _fake_clipboard(request.getfixturevalue("bin_folder"), "xclip", "TARGETS")

    def copy(kind: str, data: bytes) -> None:
        file = tmp_path / "copied"
        file.write_bytes(data)
        base = (xclip, "-selection", "clipboard", "-t")
        # It stays in the background, to answer, until the server ends.
        subprocess.run((*base, kind, "-i", str(file)), check=True, timeout=20, stdout=subprocess.DEVNULL)
        _wait_for(_lists((*base, "TARGETS", "-o"), kind))

    return Clipboard(copy, True)


@pytest.fixture(scope="session")
def compositor() -> Iterator[dict[str, str]]:
    """The environment of a Wayland display without a screen; empty where there is no compositor."""
    sway = shutil.which("sway")
    if sway is None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="glimmer-") as name:
        folder = Path(name)
        (folder / "config").write_text("output HEADLESS-1 resolution 320x200\nxwayland disable\n")
        # It does not run as root, and then runs as nobody.
        user = 65534 if os.geteuid() == 0 else None
        if user is not None:
            os.chown(folder, user, user)
        environment = {
            "PATH": os.environ["PATH"],
            "XDG_RUNTIME_DIR": name,
            "WLR_BACKENDS": "headless",
            "WLR_RENDERER": "pixman",
            "WLR_LIBINPUT_NO_DEVICES": "1",
        }
        with (folder / "log").open("wb") as output:
            server = subprocess.Popen(
                (sway, "-c", str(folder / "config")),
                env=environment,
                stdout=output,
                stderr=output,
                user=user,
                group=user,
                extra_groups=[] if user else None,
            )
        try:
            deadline = time.monotonic() + 30
            found: list[str] = []
            while not found and server.poll() is None and time.monotonic() < deadline:
                found = [path.name for path in folder.glob("wayland-*") if path.suffix != ".lock"]
                time.sleep(0.05)
            yield {"XDG_RUNTIME_DIR": name, "WAYLAND_DISPLAY": found[0]} if found else {}
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture
def wayland(
    compositor: dict[str, str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Clipboard]:
    copier, lister = shutil.which("wl-copy"), shutil.which("wl-paste")
    for name, value in (compositor or {"WAYLAND_DISPLAY": "wayland-99"}).items():
        monkeypatch.setenv(name, value)
    if not compositor or copier is None or lister is None:
        yield _fake_clipboard(request.getfixturevalue("bin_folder"), "wl-paste", "--list-types")
        return
    holders: list[subprocess.Popen[bytes]] = []

    def copy(kind: str, data: bytes) -> None:
        holder = subprocess.Popen((copier, "--foreground", "--type", kind), stdin=subprocess.PIPE)
        holders.append(holder)
        assert holder.stdin is not None
        with holder.stdin:
            holder.stdin.write(data)
        _wait_for(_lists((lister, "--list-types"), kind))

    yield Clipboard(copy, True)
    for holder in holders:
        holder.terminate()
        holder.wait(20)
