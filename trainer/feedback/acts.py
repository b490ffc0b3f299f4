"""Tell from records and texts what became of each call: carried out or not, and what it showed."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.task.canonical import canonical_json
from pipeline.task.suite import TREE
from trainer.feedback.commands import only_looks
from trainer.records import ToolCall, ToolResult

# `done`: carried out, all well. `failed`: carried out, and it went wrong. `refused`: not carried
# out, as the call is wrong. `fault`: not the policy's doing. `unanswered`: nobody carried it out.
Status = Literal["done", "failed", "refused", "fault", "unanswered"]

# The tools of `pipeline.agent.tools`.
LOOKING = frozenset({"list_files", "search", "read_file", "import_modules"})
WRITING = frozenset({"write_file", "edit_file", "edit_files", "delete_files"})
RUNNING = frozenset({"run_tests", "run_command"})

_CLOSED = "the workbench is closed"
# What tools for files say where a machine failed. A module that is imported may die by itself.
_FAULTS = re.compile(r"the call died with status |the call went over its limit of ")
_FOR_FILES = LOOKING.union(WRITING) - {"import_modules"}
# What tools say of a call that they do not take. What a command prints may begin like an error.
_REFUSALS = re.compile(r"there is no tool |TypeError: |KeyError: ")
_REFUSED_RUNS = re.compile(
    r"there is no tool |run_(?:command|tests) takes |`(?:command|timeout_s|ids)` is "
)
# How a result is cut before the policy sees it.
_CUT = re.compile(r"…\s*(?:and )?\d+ (?:more|characters)")
_ERROR = re.compile(r"(\w*(?:Error|Exception)): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A call with what came back.

    Example: `Act(turn=3, call=ToolCall(name="read_file", …), result=ToolResult(ok=True, …))`.
    """

    # Number of its Reply in the whole Episode, from 0.
    turn: int
    call: ToolCall
    # None where none came back.
    result: ToolResult | None

    @property
    def name(self) -> str:
        """The tool, as written."""
        return self.call.name

    @property
    def arguments(self) -> Mapping[str, object]:
        """The arguments; none where they cannot be read."""
        return self.call.arguments or {}

    @property
    def output(self) -> str:
        """What came back, empty for nothing."""
        return self.result.text if self.result else ""

    @property
    def status(self) -> Status:
        """What became of the call."""
        if self.result is None:
            return "unanswered"
        if self.result.is_fault:
            return "fault"
        if self.result.ok:
            return "done"
        is_late = self.name in _FOR_FILES and _FAULTS.match(self.output)
        if is_late or self.output == _CLOSED:
            return "fault"
        refusals = _REFUSED_RUNS if self.name in RUNNING else _REFUSALS
        if self.call.error or self.call.arguments is None or refusals.match(self.output):
            return "refused"
        return "failed"

    @property
    def error(self) -> str:
        """Class of the exception that a failed call reports: `FileNotFoundError`; or empty."""
        found = _ERROR.match(self.output) if self.status in {"failed", "refused"} else None
        return found[1] if found else ""

    @property
    def is_cut(self) -> bool:
        """Tell whether the policy saw but a part of what came back."""
        return _CUT.search(self.output) is not None

    @property
    def command(self) -> str:
        """The text for the shell; empty for other calls."""
        text = self.arguments.get("command")
        return text if self.name == "run_command" and isinstance(text, str) else ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths that a file tool is given, as they are below the work tree."""
        return tuple(map(plain_path, _paths(self.arguments)))

    @property
    def identity(self) -> str:
        """What equal calls have in common."""
        return identity(self.call)

    @property
    def may_change(self) -> bool:
        """Tell whether files, or whatever the environment holds, may be others after it."""
        if self.status == "refused" or self.name in LOOKING or self.name == "run_tests":
            return False
        if self.name == "run_command":
            return not only_looks(self.command)
        # Of several files some may be gone before one is missing.
        return self.status != "failed" or self.name not in WRITING or self.name == "delete_files"


def identity(call: ToolCall) -> str:
    """Return the name of a call with its arguments in one spelling, the same for equal calls."""
    written = call.raw if call.arguments is None else canonical_json(call.arguments)
    return f"{call.name} {written}"


def plain_path(path: str) -> str:
    """Return a path as it is below the work tree: `/work/./a.py` is `a.py`."""
    return posixpath.normpath(path.removeprefix(f"{TREE}/") or ".")


def _paths(arguments: Mapping[str, object]) -> Iterator[str]:
    paths, edits = arguments.get("paths"), arguments.get("edits")
    found = [arguments.get("path"), *(paths if isinstance(paths, list) else ())]
    found += [
        edit.get("path")
        for edit in (edits if isinstance(edits, list) else ())
        if isinstance(edit, dict)
    ]
    yield from (it for it in found if isinstance(it, str))
