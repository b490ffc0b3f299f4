import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer.main

from pipeline.__main__ import app
from pipeline.index import package_index

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SOURCES = sorted(path for name in ("pipeline", "trainer") for path in (ROOT / name).rglob("*.py"))

# A longer file needs a reason.
LONG_FILES = {"pipeline/task/record.py": "the vocabulary is read on one page"}

# What names the machine that a file was written on, or where it gets its packages.
MACHINE_NAMES = re.compile(
    b"|".join(
        re.escape(name.encode()) for name in (f"{ROOT}/", f"//{urlsplit(package_index()).netloc}/")
    )
)

BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>(?:(?!-->).)*) -->\n+)?"
    r"^```\w*\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of the README."""

    # Why its commands are not run; None for a block that is run.
    reason: str | None
    body: str

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each `$ command` with the lines that follow it."""
        for part in re.split(r"^\$ ", self.body, flags=re.MULTILINE)[1:]:
            command, *output = part.splitlines()
            yield command, output


BLOCKS = [Block(reason=found["reason"], body=found["body"]) for found in BLOCK.finditer(README)]


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for child, below in getattr(command, "commands", {}).items():
        yield from walk(below, f"{name} {child}")


COMMANDS = list(walk(typer.main.get_command(app), "regrow"))


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_a_command_and_each_of_its_options_has_help(name: str, command: Any) -> None:
    assert command.help, f"{name} has no help text"
    helpless = [parameter.name for parameter in command.params if not parameter.help]
    assert helpless == [], f"{name}: no help text"


def test_the_readme_shows_make_demo_and_make_test_and_no_target_that_is_not_there() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    shown = {
        target
        for block in BLOCKS
        for target in re.findall(r"^(?:\$ )?make (\S+)", block.body, re.MULTILINE)
    }
    assert {"demo", "test"} <= shown <= set(phony[1].split())


def test_what_the_readme_does_not_run_has_a_reason() -> None:
    unexplained = [
        command
        for block in BLOCKS
        for command, _ in block.commands()
        if not command.startswith("regrow ") and not (block.reason or "").strip()
    ]
    assert unexplained == []


def test_the_readmes_commands_print_what_it_shows(tmp_path: Path) -> None:
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and path.name != "runs":
            (tmp_path / path.name).symlink_to(path)
    blocks = [block for block in BLOCKS if block.reason is None]
    run = [pair for block in blocks for pair in block.commands() if pair[0].startswith("regrow ")]
    assert run, "the README runs no command"
    for command, shown in run:
        missing = missing_lines(shown, printed(command, tmp_path))
        assert missing == [], f"`{command}` did not print these lines"


def printed(command: str, folder: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, f"`{command}` exited with {done.returncode}: {done.stdout}"
    return done.stdout


def missing_lines(shown: list[str], output: str) -> list[str]:
    """Return the shown lines that are not printed in that order; `…` stands for any text."""
    rest = masked(output)
    missing = []
    for line in shown:
        parts = [re.escape(part.strip()) for part in masked(line).split("…")]
        if found := re.search(".*?".join(parts), rest):
            rest = rest[found.end() :]
        else:
            missing.append(line)
    return missing


def masked(text: str) -> str:
    """Make numbers, hashes and the widths of tables alike: they differ between machines."""
    narrow = re.sub(r"([ ─━═-])\1+", r"\1", text)
    return re.sub(r"[0-9a-f]*\d[0-9a-f.]*", "#", narrow)


def test_the_readmes_tree_names_what_exists() -> None:
    trees = [block.body for block in BLOCKS if re.match(r"[\w./-]+/(\s|$)", block.body)]
    assert trees, "the README shows no tree"
    missing = [name for tree in trees for name in tree_names(tree) if not list(ROOT.glob(name))]
    assert missing == []


def tree_names(tree: str) -> Iterator[str]:
    """Yield the paths of a tree of names, one a line, indented below their folder."""
    folders: list[tuple[int, str]] = []
    for line in filter(str.strip, tree.splitlines()):
        name = line.strip(" │├└─").split()[0]
        indent = line.index(name)
        while folders and folders[-1][0] >= indent:
            folders.pop()
        path = "".join(folder for _, folder in folders) + name
        yield path.rstrip("/")
        if name.endswith("/"):
            folders.append((indent, name))


def test_no_committed_file_names_a_machine_or_a_package_index() -> None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]
    found = {
        path.relative_to(ROOT).as_posix(): matches
        for path in files
        if (matches := MACHINE_NAMES.findall(path.read_bytes()))
    }
    assert files
    assert found == {}


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_a_module_and_its_functions_are_short(path: Path) -> None:
    text = path.read_text()
    if path.relative_to(ROOT).as_posix() not in LONG_FILES:
        assert len(text.splitlines()) <= 300
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.end_lineno is not None
        if node.end_lineno - node.lineno >= 60
    ]
    assert long == []


def test_make_knows_its_targets() -> None:
    for target in ("demo", "test", "check"):
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)
