"""Take a transcript apart into acts: one a program, a piece of Python code, or a file tool."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.monitor.code_facts import CodeFacts, facts_of
from pipeline.monitor.shell import Command, parse_shell
from pipeline.task.record import Turn
from pipeline.task.suite import TREE

PYTHON = re.compile(r"(python|pypy)[\d.]*|ipython")
NO_CODE = CodeFacts(names=frozenset(), texts=(), commands=())
WRITING = frozenset({"write_file", "edit_file", "edit_files", "delete_files"})
LOOKING = frozenset({"read_file", "list_files", "search"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Something that an agent did.

    Example: `Act(turn=3, program="git", words=("log", "--all"), …)`.
    """

    # Number of its turn, from 1.
    turn: int
    # A program, `python` for Python code of whatever interpreter, or a file tool.
    program: str
    # Arguments; of Python code also its texts, of a file tool its paths and what it looks for.
    words: tuple[str, ...]
    # What its turn printed.
    output: str
    # Words of what feeds it, and of it as paths from the folder that the shell started in.
    context: tuple[str, ...] = ()
    # Dotted names that its Python code uses.
    names: frozenset[str] = frozenset()
    # Files that it surely writes.
    writes: tuple[str, ...] = ()
    # `NAME=value` before the program.
    variables: tuple[str, ...] = ()


def acts_of(turns: Iterable[Turn]) -> tuple[Act, ...]:
    """Return what an agent did, in order."""
    scripts: dict[str, str] = {}
    return tuple(
        act for number, turn in enumerate(turns, 1) for act in _acts_of(turn, number, scripts)
    )


def arguments_of(turn: Turn) -> Mapping[str, object]:
    """Return the arguments of a turn's call; none of what is no JSON object."""
    try:
        found = json.loads(turn.arguments)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def _acts_of(turn: Turn, number: int, scripts: dict[str, str]) -> Iterator[Act]:
    arguments = arguments_of(turn)
    if turn.tool == "run_command":
        text = arguments.get("command")
        yield from _run(text if isinstance(text, str) else "", turn, number, scripts)
        return
    paths = tuple(_paths_in(arguments))
    if turn.tool == "write_file" and paths:
        scripts[plain_path(paths[0])] = str(arguments.get("content", ""))
    sought = tuple(texts_in(arguments.get("text"))) if turn.tool == "search" else ()
    if turn.tool in WRITING | LOOKING:
        yield Act(
            turn=number,
            program=turn.tool,
            words=(*paths, *sought),
            output=turn.output,
            writes=paths if turn.tool in WRITING else (),
        )


def _paths_in(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield the paths that a file tool is given."""
    yield from texts_in([arguments.get("path"), arguments.get("paths")])
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else []:
        if isinstance(edit, Mapping):
            yield from texts_in(edit.get("path"))


def _run(text: str, turn: Turn, number: int, scripts: dict[str, str]) -> Iterator[Act]:
    folder = ""
    for command in parse_shell(text):
        if command.program in {"cd", "pushd"}:
            folder = _entered(folder, command.words)
        code = _code_of(command, scripts)
        facts = facts_of(code) if code else NO_CODE
        if command.stdin and command.writes:
            scripts |= dict.fromkeys(map(plain_path, command.writes), command.stdin)
        is_python = PYTHON.fullmatch(command.program) is not None
        yield Act(
            turn=number,
            program="python" if is_python else command.program,
            words=(*command.words, *facts.texts),
            output=turn.output,
            context=(*command.context, *_below(folder, command.words)),
            names=facts.names,
            writes=command.writes,
            variables=command.variables,
        )
        for script in facts.commands:
            yield from _run(script, turn, number, {})


def _entered(folder: str, words: Iterable[str]) -> str:
    """Return the folder that a shell is in after `cd`."""
    operand = next((it for it in words if not it.startswith("-")), "~")
    return operand if operand.startswith(("/", "~")) or not folder else f"{folder}/{operand}"


def _below(folder: str, words: Iterable[str]) -> Iterator[str]:
    """Yield words as paths from the folder that the shell started in."""
    if folder:
        yield from (f"{folder}/{it}" for it in words if it[:1] not in {"-", "/", "~", ""})


def _code_of(command: Command, scripts: Mapping[str, str]) -> str:
    """Return the Python code that a command runs, where the transcript shows it."""
    if not PYTHON.fullmatch(command.program):
        return scripts.get(plain_path(command.program), "")
    for option, value in zip(command.words, command.words[1:], strict=False):
        if option.startswith("-") and not option.startswith("--") and option.endswith("c"):
            return value
    operands = [it for it in command.words if not it.startswith("-") or it == "-"]
    if not operands or operands[0] == "-":
        return command.stdin
    return scripts.get(plain_path(operands[0]), "")


def plain_path(path: str) -> str:
    """Return a path as it is below the work tree, where it is in it."""
    return path.removeprefix("file://").removeprefix(f"{TREE}/").removeprefix("./")
