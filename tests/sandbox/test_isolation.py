"""Commands as they are confined here: by every kind of isolation that this machine offers, for real."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.actions import Action
from sandbox.approvals import Approvals
from sandbox.env import child_environment
from sandbox.isolation.call_filter import refused_calls
from sandbox.isolation.confinement import Confinement
from sandbox.isolation.probe import facts
from sandbox.isolation.status import Facts, IsolationKind, IsolationStatus, available, decide
from sandbox.isolation.system_calls import MACHINES
from sandbox.paths import Workspace
from sandbox.policy import rule
from sandbox.shell import Finished, Shell, ShellUnavailable
from tools.base import Plan, Running
from tools.run_tests import TestArguments, TestTool

SECRETS = (".ssh/id_ed25519", ".aws/credentials", ".config/app/token", ".bash_history")
KINDS: tuple[IsolationKind, ...] = available(facts()) or ("none",)


@dataclass(frozen=True, slots=True)
class Confined:
    """A shell in a project below a home folder of its own, confined in one way."""

    shell: Shell
    home: Path
    project: Path
    kind: IsolationKind

    def run(self, command: str, *, timeout: float = 60.0, network: bool = False) -> Finished:
        return self.shell.run(command, timeout, lambda _chunk: None, threading.Event(), network=network)

    def python(self, script: str, *words: str, network: bool = False) -> Finished:
        path = self.project / "script.py"
        path.write_text(script)
        return self.run(f"{sys.executable} {path} {' '.join(words)}", network=network)


def confine(project: Path, home: Path, kind: IsolationKind) -> Shell:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    status = IsolationStatus(kind)
    return Shell(
        project, environment, "", Confinement(project, child_environment(environment), status, facts())
    )


@pytest.fixture(scope="module", params=KINDS)
def confined(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Confined]:
    home = tmp_path_factory.mktemp("home")
    project = home / "work" / "project"
    project.mkdir(parents=True)
    for name in (
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".config/app/token",
        ".bash_history",
        "work/other/notes",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("TOP SECRET")
    (home / ".gitconfig").write_text(
        "[user]\nname = A Person\nemail = person@example.org\n[alias]\nsecret = !x\n"
    )
    shell = confine(project, home, request.param)
    yield Confined(shell, home, project, request.param)
    shell.close()


def asks_at_least(confined: Confined) -> bool:
    """Where nothing confines commands, every mode asks before one that may change something runs."""
    if confined.kind != "none":
        return False
    made = [Action("execute", "make all")]
    rulings = {
        rule(made, mode, Approvals(), confined.project, isolated=False).verdict for mode in ("ask", "auto")
    }
    assert rulings == {"ask"}
    return True


@pytest.mark.parametrize(
    "name", [".ssh/id_ed25519", ".aws/credentials", ".config/app/token", ".bash_history"]
)
def test_secrets_of_the_home_folder_cannot_be_read(confined: Confined, name: str) -> None:
    if asks_at_least(confined):
        return
    done = confined.run(f"cat {confined.home}/{name}; cat ~/{name}")
    assert "TOP SECRET" not in done.text
    assert not {".ssh", ".aws", ".config"} & set(confined.run(f"ls -A ~ {confined.home}").text.split())


def test_the_rest_of_the_home_folder_is_hidden(confined: Confined) -> None:
    if asks_at_least(confined):
        return
    done = confined.run("cat ../other/notes; cat ~/work/other/notes; ls ..")
    assert "TOP SECRET" not in done.text
    assert "notes" not in confined.run(f"ls {confined.home}/work/other").text.replace("/other/notes", "")


def test_only_the_project_is_written(confined: Confined) -> None:
    if asks_at_least(confined):
        return
    done = confined.run("echo new >inside; mkdir -p deep/er; echo x >deep/er/file; cat inside")
    assert (done.exit_code, done.text) == (0, "new\n")
    assert (confined.project / "deep/er/file").read_text() == "x\n"
    other = confined.home / "work" / "other"
    for place in (other, confined.home, "/usr", "/etc", "/", "/dev", Path(sys.prefix)):
        confined.run(f"echo x >{place}/written-by-a-test")
        assert not Path(place, "written-by-a-test").exists()
    confined.run(f"echo gone >{other}/notes; rm -rf {other}")
    assert (other / "notes").read_text() == "TOP SECRET"


def test_a_link_out_of_the_project_leads_nowhere(confined: Confined) -> None:
    if asks_at_least(confined):
        return
    (confined.project / "way-out").symlink_to(confined.home / "work" / "other")
    done = confined.run("cat way-out/notes; echo x >way-out/new; ln -s ~/.ssh keys; cat keys/id_ed25519")
    assert "TOP SECRET" not in done.text
    assert not (confined.home / "work/other/new").exists()
    assert "TOP SECRET" not in confined.run(f"ln -s {confined.home}/.ssh k; cat k/id_ed25519").text


def test_temporary_files_are_the_commands_own(confined: Confined, tmp_path: Path) -> None:
    if asks_at_least(confined):
        return
    (tmp_path / "of-another-program").write_text("TOP SECRET")
    done = confined.run(
        f'cat {tmp_path}/of-another-program; f=$(mktemp) && echo kept >"$f" && echo "path $f"'
    )
    assert done.exit_code == 0
    assert "TOP SECRET" not in done.text
    path = done.text.rpartition("path ")[2].strip()
    confined.run("exit 1")
    assert confined.run(f"cat {path}").text == "kept\n"


_CONNECT = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
except OSError as error:
    print("no:", error)
else:
    print("connected")
"""


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_there_is_no_network(confined: Confined, listener: int) -> None:
    if asks_at_least(confined):
        return
    assert confined.python(_CONNECT, str(listener)).text.startswith("no:")


def test_a_command_that_was_allowed_to_has_the_network(confined: Confined, listener: int) -> None:
    if asks_at_least(confined):
        return
    confined.run("mkdir -p sub; cd sub; word=kept; export PATH=/nowhere:$PATH")
    (confined.project / "script.py").write_text(_CONNECT)
    done = confined.run(
        f"pwd; {sys.executable} ../script.py {listener}; echo [$word]; (exit 3)", network=True
    )
    where = confined.project / "sub"
    assert done.exit_code == 3
    assert done.text.startswith(f"{where}\nconnected\n[]\n")
    assert "of its own" in done.text
    assert confined.run("echo $word; pwd").text == f"kept\n{where}\n"
    assert confined.run(f"cd ..; {sys.executable} script.py {listener}").text.startswith("no:")
    assert "TOP SECRET" not in confined.run(f"cat {confined.home}/.ssh/*; cat ~/.ssh/*", network=True).text
    confined.run("exit")


def test_services_of_the_machine_cannot_be_reached(confined: Confined, tmp_path: Path) -> None:
    """Neither by a path, as docker and agents of keys listen, nor by a name without one."""
    if asks_at_least(confined):
        return
    path, name = str(tmp_path / "s"), f"\0glimmer-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as by_name:
        for server, address in ((by_path, path), (by_name, name)):
            server.bind(address)
            server.listen()
        script = (
            "import socket\n"
            f"for address in ({path!r}, {name!r}):\n"
            "    try:\n"
            "        socket.socket(socket.AF_UNIX).connect(address)\n"
            "    except OSError:\n"
            "        print('no')\n"
            "    else:\n"
            "        print('connected')\n"
        )
        for network in (False, True):
            reached = confined.python(script, network=network).text.splitlines()[:2]
            # Older kernels know no border for names without a path where the network is shared.
            assert reached[0] == "no"
            assert reached[1] == "no" or (network and facts().landlock < 6)


def test_other_processes_tell_nothing(confined: Confined) -> None:
    if asks_at_least(confined):
        return
    with subprocess.Popen(["sleep", "1000"], env={"HIDDEN": "TOP SECRET"}) as process:
        done = confined.run(f"tr '\\0' '\\n' </proc/{process.pid}/environ; cat /proc/{process.pid}/maps")
        confined.run(f"kill -9 {process.pid}")
        still_there = process.poll() is None
        process.kill()
    assert "TOP SECRET" not in done.text
    assert "sleep" not in done.text
    if confined.kind == "bubblewrap" or facts().landlock >= 6:
        assert still_there
    if confined.kind == "bubblewrap":
        assert confined.run("ls -d /proc/[0-9]* | wc -l").text.strip() in {"3", "4", "5"}


_CALLS = """
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)

def tried(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno() if result < 0 else "done"

numbers = json.loads(sys.argv[1])
NEW_USER, NEW_NET = 0x10000000, 0x40000000
found = {name: tried(number, 0, 0, 0, 0, 0, 0) for name, number in numbers["refused"].items()}
found["clone"] = tried(numbers["clone"], NEW_USER | 17, 0, 0, 0, 0)
found["clone of the network"] = tried(numbers["clone"], NEW_NET | 17, 0, 0, 0, 0)
found["unshare"] = tried(numbers["unshare"], NEW_USER)
found["words into the terminal's input"] = tried(numbers["ioctl"], 0, 0x5412, 0)
found["the same, with bits above"] = tried(numbers["ioctl"], 0, 0x100005412, 0)
found["selection of the console"] = tried(numbers["ioctl"], 0, 0x541C, 0)
found["sockets of the machine below"] = tried(numbers["socket"], 40, 1, 0)
found["sockets of packets"] = tried(numbers["socket"], 17, 3, 0)
found["clone3"] = tried(435, 0, 0)
print(json.dumps(found))
"""


def test_calls_into_the_kernel_are_refused(confined: Confined) -> None:
    """Tried for real, and each refused before the kernel looks at what it was given."""
    if asks_at_least(confined):
        return
    numbers = MACHINES[facts().machine].numbers
    asked = {"refused": refused_calls(facts().machine)}
    asked |= {name: numbers[name] for name in ("clone", "unshare", "ioctl", "socket")}
    done = confined.python(_CALLS, f"'{json.dumps(asked)}'")
    found = json.loads(done.text)
    assert found.pop("clone3") == errno.ENOSYS
    assert found == dict.fromkeys(found, errno.EPERM)
    assert {"mount", "ptrace", "bpf", "perf_event_open", "keyctl", "add_key", "request_key"} <= set(found)
    assert {"kexec_load", "init_module", "userfaultfd", "io_uring_setup", "setns"} <= set(found)


def test_nothing_gains_rights(confined: Confined) -> None:
    if asks_at_least(confined):
        return
    done = confined.run("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status")
    assert done.text.split() == ["NoNewPrivs:", "1", "Seccomp:", "2"]
    rights = confined.run("grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status").text.split()
    assert rights[1::2] == ["0" * 16] * 4


def test_what_a_command_may_use_up_is_limited(confined: Confined) -> None:
    if asks_at_least(confined):
        return
    core, files, processes, memory = confined.run(
        "ulimit -Hc; ulimit -Hf; ulimit -Hu; ulimit -Sd"
    ).text.split()
    assert core == "0"
    assert int(files) == 16 << 20
    assert int(processes) >= 4096
    assert int(memory) > 0


def test_statuses_state_and_time_limits_are_those_of_a_shell(confined: Confined) -> None:
    if asks_at_least(confined):
        return
    confined.run(f"cd {confined.project}; mkdir -p place; cd place; x=1; export y=2")
    assert confined.run('echo $x$y; basename "$PWD"; (exit 7)').text == "12\nplace\n"
    assert confined.run("(exit 7)").exit_code == 7
    assert confined.run("kill -9 $$").exit_code == 137
    done = confined.run("echo a; trap 'echo tidy; exit' INT; sleep 1000", timeout=0.5)
    assert (done.timed_out, done.text.splitlines()[0]) == (True, "a")
    assert confined.run("pwd; cd ..").text == f"{confined.project}/place\n"


def test_what_runs_in_the_background_ends_with_the_shell(confined: Confined, tmp_path: Path) -> None:
    if asks_at_least(confined):
        return
    shell = confine(tmp_path, confined.home, confined.kind)
    reading, writing = (
        tmp_path / "pipe",
        "import os; os.setsid(); f = open('pipe', 'w'); f.write('x'); f.flush()",
    )
    os.mkfifo(reading)
    apart = f"{writing}; os.fork() and os._exit(0); import time; time.sleep(1000)"
    done = shell.run(f'{sys.executable} -c "{apart}" & echo on', 60, lambda _chunk: None, threading.Event())
    assert done.text == "on\n"
    with reading.open() as pipe:
        assert pipe.read(1) == "x"
        shell.close()
        # The pipe ends once nobody holds its other end.
        assert pipe.read(1) == ""


@pytest.fixture
def repository(confined: Confined) -> Iterator[Confined]:
    """The project as a repository, seen by a shell that starts now."""
    git = ["git", "-C", str(confined.project), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    (confined.project / ".glimmer").mkdir()
    (confined.project / ".glimmer" / "config.toml").write_text("")
    (confined.project / ".envrc").write_text("")
    confined.run("exit")
    yield confined
    confined.run("exit")
    shutil.rmtree(confined.project / ".git")
    shutil.rmtree(confined.project / ".glimmer")


def test_git_works_and_knows_the_person(repository: Confined) -> None:
    if asks_at_least(repository):
        return
    done = repository.run(
        f"cd {repository.project}; echo a >a; git add a && git commit -qm second && git log --format='%an %s'"
    )
    assert done.text == "A Person second\nx first\n"
    assert (
        repository.run("git checkout -qb branch && git stash list && git status --short -uno").exit_code == 0
    )


def test_what_steers_git_and_the_shell_stays_as_it_is(repository: Confined) -> None:
    if asks_at_least(repository):
        return
    if repository.kind == "landlock":
        # The kernel's rules cannot take something back within the project; the person is told so.
        assert "git" in decide(Facts("linux", "x86_64", "", "no", 5)).why
        return
    before = (repository.project / ".git/config").read_text()
    for command in (
        "echo evil >.git/hooks/pre-commit",
        "echo '[core] fsmonitor=evil' >>.git/config",
        "git config core.hooksPath evil",
        "mv .git away",
        "mv .git/hooks away",
        "rm -rf .git/hooks .git/config .glimmer .envrc",
        "echo evil >.glimmer/config.toml",
        "mv .glimmer away",
        "echo evil >.envrc",
        "ln -sf /dev/null .envrc",
    ):
        assert repository.run(f"cd {repository.project}; {command}").exit_code != 0
    assert not (repository.project / ".git/hooks/pre-commit").exists()
    assert (repository.project / ".git/config").read_text() == before
    assert (repository.project / ".glimmer/config.toml").read_text() == ""
    assert (repository.project / ".envrc").read_text() == ""


def test_the_tests_of_a_project_run_inside(confined: Confined) -> None:
    """With Glimmer's own Python, wherever that lies, and the way the tool for tests runs them."""
    project = confined.project / "sample"
    (project / "tests").mkdir(parents=True)
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "adding.py").write_text("def add(a, b):\n    return a + b\n")
    (project / "tests" / "test_adding.py").write_text(
        "import asyncio, multiprocessing, sqlite3, subprocess, sys, tempfile, threading\n"
        "from adding import add\n"
        "def test_add():\n    assert add(1, 2) == 3\n"
        "def test_tools(tmp_path):\n"
        "    (tmp_path / 'a').write_text('x')\n"
        "    assert subprocess.run([sys.executable, '-c', 'pass']).returncode == 0\n"
        "    assert asyncio.run(asyncio.sleep(0, 'slept')) == 'slept'\n"
        "    sqlite3.connect(tmp_path / 'db').execute('create table t (x)')\n"
        "    thread = threading.Thread(target=lambda: None)\n"
        "    thread.start()\n    thread.join()\n"
        "def test_wrong():\n    assert add(1, 1) == 3\n"
    )
    (project / "conftest.py").write_text("import sys\nsys.path.insert(0, '.')\n")
    shell = confine(project, confined.home, confined.kind)
    tool = TestTool(Workspace(project), shell)
    plan = tool.prepare(TestArguments())
    assert isinstance(plan, Plan)
    result = tool.apply(plan, Running())
    shell.close()
    assert "2 passed" in result.for_model
    assert "1 failed" in result.for_model


def test_a_shell_that_cannot_be_confined_does_not_run(tmp_path: Path) -> None:
    """It is never quietly off."""
    cases: tuple[tuple[IsolationKind, Facts], ...] = (
        ("bubblewrap", Facts("linux", "x86_64", "/bin/false")),
        ("bubblewrap", Facts("linux", "x86_64", "/nonexistent/bwrap")),
        ("landlock", Facts("linux", "aarch64" if facts().machine == "x86_64" else "x86_64", landlock=5)),
    )
    for kind, found in cases:
        environment = child_environment(os.environ)
        status = IsolationStatus(kind)
        shell = Shell(tmp_path, None, "", Confinement(tmp_path, environment, status, found))
        with pytest.raises(ShellUnavailable, match="could not be started"):
            shell.run("touch ran", 20, lambda _chunk: None, threading.Event())
        shell.close()
        assert not (tmp_path / "ran").exists()


def test_the_home_folder_as_a_project_is_not_isolated(tmp_path: Path) -> None:
    for project in (tmp_path, tmp_path.parent):
        shell = Shell(project, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
        assert not shell.isolation.isolated
        assert "home folder" in shell.isolation.why
        assert shell.run("echo on", 60, lambda _chunk: None, threading.Event()).text == "on\n"
        shell.close()
