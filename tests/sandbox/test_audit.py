import json
import os
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.audit import AuditLog, AuditUnavailable

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary()
    | st.text(st.characters(exclude_categories=[])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_events_are_lines_with_time_and_kind(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.jsonl"
    log = AuditLog(path)
    assert log.record("command", command="ls\n-la", exit_code=0, path=Path("a/b")) == ""
    assert log.record("approval", kind="mine", time="mine") == ""
    first, second = read(path)
    assert first | {"time": ""} == {
        "time": "",
        "kind": "command",
        "command": "ls\n-la",
        "exit_code": 0,
        "path": "a/b",
    }
    assert abs((datetime.now(UTC) - datetime.fromisoformat(first["time"])).total_seconds()) < 3600
    assert first["time"].endswith("+00:00")
    assert (second["kind"], second["field_kind"], second["field_time"]) == ("approval", "mine", "mine")


def test_the_log_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    path = folder / "audit.jsonl"
    path.write_text("{}\n")
    path.chmod(0o644)
    AuditLog(path).record("start")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(read(path)) == 2


@pytest.mark.parametrize("what", ["link", "dangling", "folder", "pipe", "twin"])
def test_what_is_not_a_file_of_ones_own_is_refused(tmp_path: Path, what: str) -> None:
    path, other = tmp_path / "audit.jsonl", tmp_path / "other"
    match what:
        case "link":
            other.write_text("kept")
            path.symlink_to(other)
        case "dangling":
            path.symlink_to(other)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            other.write_text("kept")
            os.link(other, path)
    with pytest.raises(AuditUnavailable, match=r"cannot be opened"):
        AuditLog(path)
    assert not other.exists() or other.read_text() == "kept"


def test_two_logs_and_many_threads_never_mix_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    logs = [AuditLog(path), AuditLog(path)]

    def work(number: int) -> None:
        for step in range(50):
            assert logs[number % 2].record("step", text="x" * 3000, who=number, step=step) == ""

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((event["who"], event["step"]) for event in read(path)) == [
        (who, step) for who in range(4) for step in range(50)
    ]


@settings(deadline=None, max_examples=25)
@given(
    st.dictionaries(st.text(st.characters(categories=["Ll"]), min_size=1, max_size=5), _VALUES, max_size=4)
)
def test_any_value_makes_one_readable_line(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"
    log = AuditLog(path)
    assert log.record("any", **fields) == ""
    log.close()
    (event,) = read(path)
    assert len(event) == len(fields) + 2


def test_long_and_deep_values_are_cut_with_a_mark(tmp_path: Path) -> None:
    class Rude:
        def __str__(self) -> str:
            raise RuntimeError("no")

    path = tmp_path / "audit.jsonl"
    endless: list[object] = []
    endless.append(endless)
    log = AuditLog(path)
    log.record(
        "long",
        text="x" * 10_000_000,
        data=b"\xff" * 50_000,
        many=list(range(5000)),
        deep=endless,
        rude=Rude(),
    )
    log.record("long", number=1 << 100_000)
    assert path.stat().st_size < 100_000
    event = read(path)[0]
    assert event["text"].endswith("[9996000 more]")
    assert event["data"].endswith("[46000 more]")
    assert event["many"][-1] == "… 4900 more"
    assert event["rude"] == "<Rude>"


def test_a_torn_last_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text('{"kind": "to')
    AuditLog(path).record("next")
    torn, line = path.read_text().splitlines()
    assert torn == '{"kind": "to'
    assert json.loads(line)["kind"] == "next"


_FULL_DISK = """
import resource, sys
from pathlib import Path
from sandbox.audit import AuditLog

path = Path(sys.argv[1])
log = AuditLog(path)
said = [log.record("fits")]
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, resource.RLIM_INFINITY))
said += [log.record("too much"), log.record("too much"), log.record("too much")]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
said += [log.record("fits again")]
log.close()
said += [log.record("closed"), log.record("closed")]
print("\\n".join(repr(bool(line)) for line in said))
"""


def test_a_full_disk_is_told_once_and_work_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    repository = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(path)],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True", "False", "False", "False", "True", "False"]
    lines = path.read_text().splitlines()
    assert json.loads(lines[0])["kind"] == "fits"
    assert json.loads(lines[-1])["kind"] == "fits again"
