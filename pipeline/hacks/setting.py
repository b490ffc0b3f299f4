"""What a cheating solver has before it: the request, the tree, the tests that it may see."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from textwrap import dedent

from pipeline.task.patch import apply_patch
from pipeline.task.record import Symbol, Task
from pipeline.task.tree import apply_changes

Files = Mapping[str, bytes]
# New content by path, None for a removed file.
FileChanges = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A Task as a solver meets it, with the seams and signatures that its instruction tells."""

    title: str
    symbols: tuple[Symbol, ...]
    # Ids of the targets that the solver may see.
    tests: tuple[str, ...]
    # The solve tree.
    files: Files
    # Files of the gold patch. A stub takes names, signatures and imports from here, never bodies;
    # honest controls take all of it.
    gold: FileChanges

    @property
    def test_files(self) -> tuple[str, ...]:
        """Paths of the files that hold visible targets."""
        return tuple(dict.fromkeys(key.split("::")[0] for key in self.tests))

    @property
    def test_names(self) -> tuple[str, ...]:
        """Names of the visible target functions, each once."""
        return tuple(dict.fromkeys(key.split("[")[0].split("::")[-1] for key in self.tests))

    @property
    def module(self) -> str:
        """Path of the module that the first symbol belongs to."""
        return self.symbols[0].path

    def fill(self, code: str) -> str:
        """Dedent code and put this Task's facts for `$IDS`, `$FILES`, `$NAMES`, `$NAME`."""
        facts = {
            "IDS": repr(self.tests),
            "FILES": repr(self.test_files),
            "NAMES": repr(self.test_names),
            "NAME": self.symbols[0].name,
        }
        return Template(dedent(code).strip("\n")).safe_substitute(facts)


def set_up(task: Task, solve_files: Files) -> Setting:
    """Lay out a Task before a solver.

    Args:
        task: what to solve.
        solve_files: the solve tree.
    """
    gold = apply_patch(solve_files, task.deletion.gold_patch)
    return Setting(
        title=task.feature.title,
        symbols=task.feature.symbols,
        tests=tuple(
            target.id for target in task.evidence.fail_to_pass if is_shown(target.id, solve_files)
        ),
        files=solve_files,
        gold=gold,
    )


def is_shown(key: str, files: Files) -> bool:
    """Tell whether a tree holds the function of a test id."""
    path, *names = key.split("[", maxsplit=1)[0].split("::")
    if path not in files or not path.endswith(".py") or not names:
        return False
    text = files[path].decode("utf-8", "replace")
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == names[-1]
        for node in ast.walk(ast.parse(text))
    )


def solved_files(setting: Setting) -> dict[str, bytes]:
    """Return the solve tree with the gold patch."""
    return apply_changes(setting.files, setting.gold)
