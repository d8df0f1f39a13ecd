"""Readers told to do more than read: by their options, a link, a wildcard, or a folder of secrets."""

import os
import subprocess
from itertools import product
from pathlib import Path

import pytest

from sandbox.command_risk import assess


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("x = 1\n")
    (root / "README.md").write_text("hello\n")
    (root / "opts").write_text("-n 2\n")
    return root


def _level(command: str, root: Path) -> str:
    return assess(command, root).level


_WRITING = ("w src/main.py", "1e touch pwned", "s/a/b/e", "s/a/b/w src/main.py", "r README.md", "p;w x")
_CARRIERS = ("-e{}", "-e {}", "-ne{}", "-nEe {}", "--expression={}", "--expression {}", "-z -n -e{}")
_DECOYS = ("", " -- -e p", " -- --expression=p", " -- p", " -- -ep", " -e p", " -ne p")


@pytest.mark.parametrize("script", _WRITING)
def test_a_script_of_sed_is_judged_wherever_it_stands(script: str, project: Path) -> None:
    for carrier, decoy in product(_CARRIERS, _DECOYS):
        word = carrier.format(f"'{script}'")
        for command in (f"sed {word} README.md{decoy}", f"sed {word}{decoy}", f"sed -e p {word}{decoy}"):
            assert _level(command, project) == "ask", command


def test_plain_scripts_of_sed_still_pass(project: Path) -> None:
    for carrier in _CARRIERS:
        command = f"sed {carrier.format('p')} README.md"
        assert _level(command, project) == "read", command
    assert _level("sed -n -- 1,2p README.md", project) == "read"
    assert _level("sed p README.md -e 1d", project) == "ask"


def _words_that_xxd_takes_for_one_option() -> list[str]:
    firsts, more = "pubEilscga", ("s", "b", "p", "ps", "ostscript", "l", "c", "o", "-", "x")
    return [f"-{first}{rest}" for first, rest in product(firsts, more)]


@pytest.mark.parametrize("option", _words_that_xxd_takes_for_one_option())
def test_no_word_passes_for_several_options_of_xxd(option: str, project: Path) -> None:
    assert _level(f"xxd {option} README.md src/main.py", project) == "ask"
    assert _level(f"xxd {option} README.md", project) == "ask"


def test_what_xxd_may_do(project: Path) -> None:
    for options in ("", "-p", "-b", "-u -i", "-l 16", "-l16", "-c 8 -g 1", "-s 0x10", "-E -c8"):
        assert _level(f"xxd {options} README.md", project) == "read", options


@pytest.mark.parametrize(
    "command",
    ["xxd README.md -p", "xxd README.md -l 4", "uniq README.md -c", "uniq README.md -f 1", "uniq - -d"],
)
def test_an_option_after_an_operand_may_be_a_file_that_is_written(command: str, project: Path) -> None:
    assert _level(command, project) == "ask"


def test_a_value_after_an_operand_may_be_a_file_that_is_read(project: Path) -> None:
    assert _level("head README.md -n 5", project) == "read"
    assert _level("head README.md -n /etc/passwd", project) == "ask"
    assert _level("cut README.md -f .env", project) == "ask"


@pytest.mark.parametrize(
    "words",
    [
        "@opts",
        "-n @opts",
        "-n 4 @opts",
        "-- @opts",
        "-e @opts x",
        "-t d -e @opts",
        "README.md @opts",
        "-n ?opts",
    ],
)
def test_strings_reads_no_options_from_a_file(words: str, project: Path) -> None:
    (project / "@opts").write_text("-n 2\n")
    assert _level(f"strings {words}", project) == "ask"
    assert _level("strings -n 4 README.md", project) == "read"


@pytest.mark.parametrize("pattern", [".?", ".*", ".[!a]*", ".[.]", ".[!a]", "..*", ".**", ".[[:punct:]]"])
def test_a_wildcard_that_may_mean_the_folder_above_asks(pattern: str, project: Path) -> None:
    for form in ("{}", "{}/x", "src/{}/x", "{0}/{0}/{0}/etc/passwd", "src/{0}/{0}/y", "./{}/.py"):
        path = form.format(pattern)
        for command in (
            f"cat {path}",
            f"ls {path}",
            f"grep x {path}",
            f"wc -l README.md {path}",
            f"cat -- {path}",
        ):
            assert _level(command, project) == "ask", command
            assert assess(command).level == "ask", command


def test_other_wildcards_for_dot_files_pass(project: Path) -> None:
    (project / ".flake8").write_text("")
    for command in ("ls .f*", "cat .fl?ke8", "cat ./*.md", "cat src/../*.md"):
        assert _level(command, project) == "read", command


def _bare(folder: Path) -> None:
    for name in ("objects", "refs", "sub"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")


def test_git_in_a_repository_behind_a_link_asks(project: Path) -> None:
    subprocess.run(["git", "init", "-q", project], check=True)
    _bare(project / "fix" / "b")
    (project / "fix" / "inner" / "deep").mkdir(parents=True)
    (project / "fix" / "inner" / ".git").write_text("gitdir: ../b\n")
    links = {
        "docs": "fix/b/sub",
        "top": "fix/b",
        "twice": "docs",
        "src/up": "../fix/b/sub",
        "deep": "fix/inner/deep",
        "plain": "src",
    }
    for name, target in links.items():
        (project / name).symlink_to(target)
    for folder in ("docs", "top", "twice", "src/up", "deep", "fix/b/sub", "fix/inner/deep"):
        for command in ("git diff", "git status", "git log"):
            assert _level(f"cd {folder} && {command}", project) == "ask", (folder, command)
            assert assess(command, project, project / folder).level == "ask"
        assert _level(f"cd {folder}; git log", project) == "ask"
    assert _level("cd plain && git diff", project) == "read"
    assert assess("git diff", project, project / "plain").level == "read"


def test_a_project_reached_through_a_link_keeps_its_git(project: Path) -> None:
    link = project.parent / "link"
    link.symlink_to(project)
    subprocess.run(["git", "init", "-q", project], check=True)
    assert assess("cd src && git status", link).level == "read"
    assert assess("git status", link, link / "src").level == "read"


@pytest.mark.parametrize(
    "option", ["-r", "-rn", "--recursive", "-d recurse", "--directories=recurse", "-drecurse"]
)
@pytest.mark.parametrize("start", ["", " .", " src", " ./src/../", " s*", " README.md s*", " src README.md"])
def test_grep_through_a_folder_that_holds_a_secret_asks(option: str, start: str, project: Path) -> None:
    (project / "src" / ".env").write_text("KEY=1\n")
    assert _level(f"grep {option} K{start}", project) == "ask"
    assert _level(f"grep {option} -e K{start}", project) == "ask"


def test_grep_reads_the_settings_of_git_only_when_they_are_plain(project: Path) -> None:
    subprocess.run(["git", "init", "-q", project], check=True)
    config = project / ".git" / "config"
    with config.open("a") as file:
        file.write('[remote "origin"]\n\turl = git@host.test:me/it.git\n')
        file.write("\tfetch = +refs/heads/*:refs/remotes/origin/*\n")
    assert _level("grep -rn x .", project) == "read"
    assert _level("grep -r url .git", project) == "read"
    for line in (
        "url = https://token@host.test/it.git",
        "url = https://me:token@host.test/it.git",
        "extraheader = AUTHORIZATION: basic abc",
        "[credential]",
        "password = x",
    ):
        before = config.read_text()
        config.write_text(f"{before}\t{line}\n")
        for command in ("grep -r url .git", "grep -rn x .", "cd .git && grep -r x", "diff -r .git src"):
            assert assess(command, project).secret, (line, command)
        assert _level("grep -rn --exclude-dir=.git x .", project) == "read"
        config.write_text(before)


@pytest.mark.parametrize(
    "options",
    ["-g '.e*'", "-g '*'", "--glob '.*'", "--glob=.e?v", "--iglob '.E*'", "-t all", "--type=sh", "-ig'*'"],
)
def test_rg_told_to_look_at_dot_files_asks(options: str, project: Path) -> None:
    (project / "src" / ".env").write_text("KEY=1\n")
    assert _level(f"rg {options} K", project) == "ask"
    assert _level("rg K", project) == "read"


@pytest.mark.parametrize(
    "options", ["-g '*.py'", "-g 'src/**/*.rs'", "-g '!*.md'", "-t py", "-tgo", "--type rust"]
)
def test_rg_told_to_look_at_source_files_passes_over_dot_files(options: str, project: Path) -> None:
    (project / "src" / ".env").write_text("KEY=1\n")
    assert _level(f"rg {options} K", project) == "read"
    for more in ("-g '*'", "-g '*.{py,env}'", "-g '[.]env'", "-tjson", "-g '.env*'"):
        assert _level(f"rg {options} {more} K", project) == "ask"
    (project / "server.key").write_text("")
    assert _level(f"rg {options} K", project) == "ask"


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", "src/.ignore", ".git/info/exclude"])
@pytest.mark.parametrize("line", ["!.env", "!.*", "!/src/.env", "!**/.e[n]v", "!src/**"])
def test_rg_asks_when_an_ignore_file_lets_dot_files_in(name: str, line: str, project: Path) -> None:
    (project / "src" / ".env").write_text("KEY=1\n")
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("build\n!.env.example\n")
    for command, folder in (("rg K", project), ("rg K src", project), ("rg K", project / "src")):
        path.write_text("build\n!.env.example\n")
        assert assess(command, project, folder).level == "read", command
        path.write_text(f"build\n{line}\n")
        assert assess(command, project, folder).level == "ask", command


def test_comparing_folders_follows_links_and_asks(project: Path) -> None:
    (project / "other").mkdir()
    assert _level("diff -r src other", project) == "read"
    (project / "other" / "x").symlink_to("/etc")
    assert _level("diff -r src other", project) == "ask"
    assert _level("diff -r src oth*", project) == "ask"


@pytest.mark.parametrize(
    "paths", ["'.e*'", "'*'", "'src/*'", "':(glob)**/.e*'", "':(icase).ENV'", "'[.]env'", "src*", "'*.json'"]
)
@pytest.mark.parametrize(
    "git",
    [
        "git grep K --",
        "git grep -e K --",
        "git grep K HEAD --",
        "git diff --",
        "git log -p --",
        "git show HEAD --",
    ],
)
def test_git_matches_no_wildcard_that_may_name_a_secret(git: str, paths: str, project: Path) -> None:
    assert _level(f"{git} {paths}", project) == "ask"
    assert _level(f"{git} README.md {paths}", project) == "ask"
    assert _level(f"{git} '*.py' 'src/**/*.ts' README.md", project) == "read"


def test_git_grep_reads_only_what_is_tracked(project: Path) -> None:
    assert _level("git grep K", project) == "read"
    assert _level("git grep 'K*[a]?' src", project) == "read"
    for option in ("--untracked", "--no-index", "--no-exclude-standard"):
        assert _level(f"git grep {option} K", project) == "ask"


def test_readers_that_pass_leave_the_file_they_could_overwrite(project: Path) -> None:
    target = project / "src" / "main.py"
    before = target.read_bytes()
    for option in ("", *(f"-{first}{rest}" for first, rest in product("pubEilscg", ("", "s", "4", "ols")))):
        for command in (f"xxd {option} README.md src/main.py", f"uniq {option} README.md src/main.py"):
            if _level(command, project) == "read":
                subprocess.run(
                    command.split(), cwd=project, check=False, capture_output=True, stdin=subprocess.DEVNULL,
                    env={"PATH": os.environ["PATH"]},
                )  # fmt: skip
            assert target.read_bytes() == before, command
