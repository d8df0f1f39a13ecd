"""Whatever path a model writes, nothing outside the project is read, changed or named."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.paths import ABSENT, PathRefused, Workspace

_SECRET = b"never to be seen"
_PARTS = st.sampled_from(
    [
        "",
        ".",
        "..",
        "a",
        "b",
        "f",
        "in",
        "out",
        "up",
        "abs",
        "loop",
        "~",
        "~root",
        "secret",
        ".git",
        "outside",
        "project",
    ]
) | st.text(max_size=6)
_PATHS = st.lists(_PARTS, max_size=8).map("/".join) | st.text(max_size=30)


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        project, outside = base / "project", base / "outside"
        (project / "a" / "b").mkdir(parents=True)
        outside.mkdir()
        (outside / "secret").write_bytes(_SECRET)
        (base / "secret").write_bytes(_SECRET)
        (project / "a" / "f").write_bytes(b"fine")
        (project / "in").symlink_to("a/b")
        (project / "out").symlink_to("../outside")
        (project / "a" / "up").symlink_to("../..")
        (project / "a" / "abs").symlink_to(outside)
        (project / "loop").symlink_to("loop/loop")
        yield base


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=_PATHS, prefix=st.sampled_from(["", "", "", "/", "{root}/", "{root}", "{root}/../"]))
def test_no_path_reaches_outside(base: Path, path: str, prefix: str) -> None:
    workspace = Workspace(base / "project")
    path = prefix.format(root=workspace.root) + path
    try:
        found = workspace.locate(path)
    except PathRefused:
        pass
    else:
        assert not found.is_absolute()
        assert ".." not in found.parts
        assert Path(os.path.realpath(workspace.root / found)).is_relative_to(workspace.root)
        assert workspace.locate(found) == found
    for attempt in (
        lambda: workspace.read(path, 100),
        lambda: workspace.write(path, b"new", ABSENT),
        lambda: workspace.write(path, b"again", workspace.fingerprint(path)),
        lambda: workspace.delete(path, workspace.fingerprint(path)),
    ):
        try:
            seen = attempt()
        except PathRefused:
            continue
        assert seen != _SECRET
    assert sorted(os.listdir(base)) == ["outside", "project", "secret"]
    assert os.listdir(base / "outside") == ["secret"]
    assert (base / "outside" / "secret").read_bytes() == (base / "secret").read_bytes() == _SECRET
    assert not (base / "project" / ".git").exists()
