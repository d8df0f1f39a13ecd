"""The shell on a real terminal: statuses, state, input, and output."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.shell import TEXT_LIMIT, Finished, Shell, ShellUnavailable


class Driven:
    """A shell with its live output gathered."""

    def __init__(self, root: Path, environment: dict[str, str] | None = None) -> None:
        self.shell = Shell(root, environment)
        self.live: list[str] = []

    def run(self, command: str, timeout: float = 60.0) -> Finished:
        return self.shell.run(command, timeout, self.live.append, threading.Event())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    root = tmp_path_factory.mktemp('it\'s a "proj" $HOME é\u202e')
    driven = Driven(root)
    yield driven
    driven.shell.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Driven]:
    root = tmp_path / "project"
    root.mkdir()
    driven = Driven(root)
    yield driven
    driven.shell.close()


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [
        ("echo hello", 0, "hello\n"),
        ("printf 'no newline'", 0, "no newline"),
        ("true", 0, ""),
        ("", 0, ""),
        ("# only a comment", 0, ""),
        ("(exit 7)", 7, ""),
        ("false | true", 0, ""),
        ("set -o pipefail; false | true; s=$?; set +o pipefail; (exit $s)", 1, ""),
        ("bash -c 'kill -9 $$'", 137, None),
        ("nonexistent-program", 127, "bash: line 1: nonexistent-program: command not found\n"),
        ("echo 'one\ntwo'", 0, "one\ntwo\n"),
        ('echo "it\'s" \'a "quote"\' \\\\ \\$x', 0, 'it\'s a "quote" \\ $x\n'),
        ("cat <<'END'\n$HOME `id`\nEND", 0, "$HOME `id`\n"),
        ("cat <<END\nno end", 0, None),
        ("for i in 1 2; do\n  echo $i\ndone", 0, "1\n2\n"),
        ("echo one &&\\\n echo two", 0, "one\ntwo\n"),
        ("echo 'never closed", 2, None),
        ('echo "never closed $(', 2, None),
        ("if true; then", 2, None),
        (")", 2, None),
        ("echo a; fi", 2, None),
        ("return 4", 2, None),
        ("!!; echo 'a!b'", 0, "bash: line 1: !!: command not found\na!b\n"),
        ("echo $-", 0, "hBc\n"),
        ("echo caf\udce9 | od -An -tx1", 0, " 63 61 66 e9 0a\n"),
        ("echo 日本語", 0, "日本語\n"),
        ("printf 'a\\nb\\n' >&2", 0, "a\nb\n"),
        ("yes | head -n 2", 0, "y\ny\n"),
        ("kill -0 $$ && test -t 1 && test -t 2 && ! test -t 0 && echo terminal", 0, "terminal\n"),
        ("echo $COLUMNS $LINES", 0, "80 24\n"),
    ],
)
def test_status_and_text(shared: Driven, command: str, status: int, text: str | None) -> None:
    done = shared.run(command)
    assert done.exit_code == status
    assert (done.timed_out, done.cancelled, done.restarted, done.cut) == (False, False, "", 0)
    if text is not None:
        assert done.text == text
    assert "glimmer" not in done.text


@pytest.mark.parametrize(
    "command",
    [
        "read -r line; echo got:$line",
        "cat",
        "cat /dev/tty",
        "python3 -i",
        "python3 -c 'import getpass; getpass.getpass()'",
        "python3 -c 'open(\"/dev/tty\")'",
        "python3 -c 'import os; os.read(1, 1)'",
        "git init -q . && git commit --allow-empty",
        "select x in a b; do echo $x; done",
        "bash --norc -i",
        "sh",
        "python3 -c 'input()'",
        "head -c 1 <&2",
    ],
)
def test_nothing_waits_for_a_person(shared: Driven, command: str) -> None:
    done = shared.run(command)
    assert done.exit_code is not None
    assert not done.timed_out


def test_the_terminal_cannot_be_read_by_its_name(shared: Driven) -> None:
    done = shared.run("python3 -c 'import os; print(oct(os.fstat(1).st_mode & 0o777))'")
    assert done.text == "0o200\n"


def test_state_stays(fresh: Driven) -> None:
    fresh.run("mkdir -p 'a b/c'; cd 'a b'; word='x y'; export OUT=1; f() { echo \"f $1\"; }; declare -i n=4")
    done = fresh.run('pwd; echo "$word" $n; f 1; printenv OUT')
    root = fresh.shell.cwd
    assert done.text == f"{root}\nx y 4\nf 1\n1\n"
    assert Path(done.cwd).name == "a b"
    assert done.cwd == root
    fresh.run("(exit 9)")
    assert fresh.run("echo $?").text == "9\n"
    fresh.run("cd c")
    assert fresh.run("cd - >/dev/null; pwd").text == f"{root}\n"


@pytest.mark.parametrize(
    "enter", ["cd ln", "cd ln/", "cd a; cd ../ln", "pushd ln >/dev/null", "cd -L ln", "cd a/../ln"]
)
def test_a_folder_entered_through_a_link_is_the_one_it_leads_to(fresh: Driven, enter: str) -> None:
    """What is reported is what the next command starts from, by every way that leads up."""
    root = fresh.shell.cwd
    fresh.run("mkdir -p a/b/c/d/e in; ln -s a/b/c/d/e ln; touch ../outside.txt")
    done = fresh.run(enter)
    assert done.cwd == f"{root}/a/b/c/d/e"
    assert fresh.run("pwd; pwd -P; echo $PWD").text == f"{done.cwd}\n" * 3
    assert fresh.run("cd ../.. && cat outside.txt").exit_code == 1
    assert fresh.run("pwd").text == f"{root}/a/b/c\n"


@pytest.mark.parametrize("option", ["dotglob", "nocaseglob", "globstar", "cdable_vars", "autocd"])
def test_wildcards_and_folders_mean_the_same_for_every_command(fresh: Driven, option: str) -> None:
    done = fresh.run(f"shopt -s {option}; set -P; shopt -q {option} && echo $-")
    assert "P" in done.text
    assert fresh.run(f"shopt -q {option} || echo off").text == "off\n"
    assert "P" not in fresh.run("echo $-").text


def test_the_folder_before_is_kept_between_commands(fresh: Driven) -> None:
    root = fresh.shell.cwd
    assert fresh.run("cd -").text == "bash: line 1: cd: OLDPWD not set\n"
    fresh.run("mkdir a 'b c'; cd a")
    fresh.run("cd '../b c'")
    fresh.run("true")
    assert fresh.run("echo $OLDPWD").text == f"{root}/a\n"
    assert fresh.run("cd -").cwd == f"{root}/a"
    fresh.run("readonly OLDPWD PWD")
    assert fresh.run("echo alive").text == "alive\n"


@pytest.mark.parametrize(
    "command", ["cd /", "cd ..", "ln -s / away; cd away", "mkdir gone; cd gone; rmdir ../gone"]
)
def test_a_folder_outside_is_left_again(fresh: Driven, command: str) -> None:
    root = fresh.shell.cwd
    done = fresh.run(f"x=kept; {command}")
    assert done.exit_code == 0
    assert "project folder" in done.text
    assert done.cwd == root
    assert fresh.run("pwd; echo $x").text == f"{root}\nkept\n"


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 3", 3), ("exec true", 0), ("kill -9 $$", 137), ("set -e; false", 1), ("kill -TERM $$", 143)],
)
def test_a_shell_that_ends_is_started_anew(fresh: Driven, command: str, status: int) -> None:
    fresh.run("mkdir sub; cd sub; x=1")
    done = fresh.run(f"echo before; {command}")
    assert (done.exit_code, done.text) == (status, "before\n")
    assert f"status {status}" in done.restarted
    assert not done.timed_out
    again = fresh.run('echo [$x]; basename "$PWD"')
    assert (again.text, again.restarted) == ("[]\nsub\n", "")


def test_odd_options_and_traps_do_not_reach_the_next_command(fresh: Driven) -> None:
    assert fresh.run("set -x; echo on").text == "++ echo on\non\n"
    assert fresh.run("echo off").text == "off\n"
    fresh.run("set -euo pipefail")
    assert fresh.run("false").exit_code == 1
    assert fresh.run("set +u; trap 'echo trapped' DEBUG; echo a").text.endswith("a\n")
    done = fresh.run("echo b")
    assert done.exit_code == 0
    assert done.text.endswith("b\n")
    assert fresh.run("trap - DEBUG; trap 'echo err' ERR; (exit 5)").exit_code == 5
    assert fresh.run("trap - ERR; echo c").text == "c\n"
    assert fresh.run("trap 'echo bye' EXIT; exit 2").text == "bye\n"


def test_redirecting_the_shell_lasts_one_command(fresh: Driven) -> None:
    assert fresh.run("exec >file 2>&1 <file; echo inside").text == ""
    assert fresh.run("echo outside; cat file").text == "outside\ninside\n"
    fresh.run("exec 1>&- 2>&- 60>&- 61>&- 62>&-")
    assert fresh.run("echo still here").text == "still here\n"


def test_output_cannot_pass_for_the_end(fresh: Driven) -> None:
    forged = "echo word 0 /; printf 'a\\0b'; echo 0 >&62; echo x >&60; read -u 61; echo real; (exit 6)"
    done = fresh.run(forged)
    assert done.exit_code == 6
    assert done.text.endswith("real\n")


def test_a_forged_report_is_passed_over(fresh: Driven, tmp_path_factory: pytest.TempPathFactory) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(temporary))
        fresh.run("true")
    (pipe,) = temporary.glob("*/tell")
    assert fresh.run(f"printf '0 0 /\\0nonsense\\0\\0' >{pipe}; (exit 8)").exit_code == 8
    assert fresh.run("echo ok").text == "ok\n"


def test_the_environment_is_scrubbed(tmp_path: Path) -> None:
    base = {
        "PATH": "/usr/bin:/bin",
        "MY_API_KEY": "hidden",
        "LD_PRELOAD": "",
        "HOME": str(tmp_path),
        "GOPATH": "/go",
    }
    driven = Driven(tmp_path, base)
    text = driven.run("env").text
    driven.shell.close()
    assert "hidden" not in text
    assert "LD_PRELOAD" not in text
    assert "GOPATH=/go\n" in text
    assert "PAGER=cat\n" in text


def test_no_start_file_is_read(tmp_path: Path) -> None:
    for name in (".bashrc", ".bash_profile", ".profile", ".inputrc"):
        (tmp_path / name).write_text("echo START\n")
    driven = Driven(
        tmp_path, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "BASH_ENV": str(tmp_path / ".bashrc")}
    )
    assert driven.run("echo only").text == "only\n"
    driven.shell.close()


def test_a_bash_of_the_projects_is_not_the_shell(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "bash"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    driven = Driven(tmp_path, {"PATH": f"{fake.parent}:bin:/usr/bin:/bin"})
    assert driven.run("echo real").text == "real\n"
    driven.shell.close()


@pytest.mark.parametrize("shell", ["/nonexistent/bash", "/bin/false"])
def test_a_shell_that_cannot_start_says_so(tmp_path: Path, shell: str) -> None:
    with pytest.raises(ShellUnavailable, match="could not be started"):
        Shell(tmp_path, None, shell).run("true", 5, lambda _chunk: None, threading.Event())


def test_terminal_control_stays_out_of_the_text(shared: Driven) -> None:
    done = shared.run(
        "printf '\\033]0;title\\007\\033[1;31mred\\033[0m\\r\\n10%%\\r99%%\\033[K\\n';"
        " printf '\\033P1\\033\\\\x\\xff\\xfe\\0\\n'"
    )
    assert done.text == "red\n99%\nx\ufffd\ufffd\n"
    assert "\x1b[1;31mred" in done.screen


def test_tabs_and_line_ends_come_as_written(shared: Driven) -> None:
    assert shared.run("printf 'a\\tb\\nc\\r\\nd\\n'").screen == "a\tb\nc\r\nd\n"


def test_a_program_that_changes_the_terminal_does_not_spoil_the_next(shared: Driven) -> None:
    change = "import termios; s = termios.tcgetattr(1); s[1] |= termios.ONLCR; termios.tcsetattr(1, 0, s)"
    shared.run(f"python3 -c '{change}'")
    assert shared.run("echo a").screen == "a\n"


def test_a_long_output_keeps_its_ends(shared: Driven) -> None:
    shared.live.clear()
    done = shared.run("echo first; seq 300000; echo last")
    assert done.exit_code == 0
    assert done.text.startswith("first\n1\n2\n")
    assert done.text.endswith("\n300000\nlast\n")
    assert len(done.text) < TEXT_LIMIT + 100
    total = len("first\nlast\n") + sum(len(str(number)) + 1 for number in range(1, 300_001))
    marker = f"\n[… {done.cut} characters left out …]\n"
    assert marker in done.text
    assert len(done.text) - len(marker) + done.cut == total
    assert len(done.screen) < 300_000
    assert all(len(chunk) < 9_000 for chunk in shared.live)
    assert shared.live[-1].endswith("last\n")


def test_a_huge_line_and_binary_output_are_bounded(shared: Driven) -> None:
    done = shared.run("head -c 5000000 /dev/zero | tr '\\0' x")
    assert done.exit_code == 0
    assert len(done.text) < TEXT_LIMIT + 100
    assert done.cut == 5_000_000 - TEXT_LIMIT
    binary = shared.run("head -c 500000 /dev/urandom")
    assert binary.exit_code == 0
    assert len(binary.text) < TEXT_LIMIT + 100
    assert not any(char < " " and char not in "\t\n" for char in binary.text)


def test_output_arrives_while_the_command_runs(shared: Driven) -> None:
    shared.live.clear()
    seen = threading.Event()

    def output(chunk: str) -> None:
        shared.live.append(chunk)
        if "early" in chunk:
            Path(shared.shell.cwd, "go").touch()
            seen.set()

    wait = "echo early; until [ -e go ]; do sleep 0.05; done; rm go; echo late"
    done = shared.shell.run(wait, 60, output, threading.Event())
    assert done.text == "early\nlate\n"
    assert seen.is_set()
    assert "".join(shared.live) == done.screen


def test_a_failing_listener_stops_the_command_and_the_shell_lives_on(fresh: Driven) -> None:
    def output(_chunk: str) -> None:
        raise RuntimeError("broken screen")

    with pytest.raises(RuntimeError, match="broken screen"):
        fresh.shell.run("echo x; sleep 1000", 60, output, threading.Event())
    assert fresh.run("echo again").text == "again\n"


def test_a_command_with_a_nul_is_not_run(shared: Driven) -> None:
    done = shared.run("touch ran\0")
    assert done.exit_code == 2
    assert "NUL" in done.text
    assert not Path(shared.shell.cwd, "ran").exists()


def test_a_large_command_arrives_whole(shared: Driven) -> None:
    body = "x" * 300_000
    assert shared.run(f"cat <<'END' | wc -c\n{body}\nEND").text.strip() == "300001"


def test_calls_take_turns(shared: Driven) -> None:
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: texts.append(shared.run(f"echo {n}; sleep 0.05; echo {n}").text))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts) == [f"{n}\n{n}\n" for n in range(4)]
