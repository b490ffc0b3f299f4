"""Say what pyflakes holds against the text of a module."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pyflakes import messages
from pyflakes.checker import Checker

from pipeline.language.python.bindings import Binding
from pipeline.language.python.text import parse

FindingKind = Literal["unused import", "undefined name"]

_KINDS: dict[type[messages.Message], FindingKind] = {
    messages.UnusedImport: "unused import",
    messages.UndefinedExport: "undefined name",
    messages.UndefinedLocal: "undefined name",
    messages.UndefinedName: "undefined name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A thing that a linter would report.

    Example: `Finding(kind="unused import", name="os.path as p", line=3)`.
    """

    kind: FindingKind
    # Of an import as `name_import` has it.
    name: str
    line: int


@lru_cache(maxsize=256)
def lint(text: str, *, path: str) -> tuple[Finding, ...]:
    """Return the findings of a module in order of lines; none of what this Python cannot parse."""
    tree = parse(text)
    if tree is None:
        return ()
    try:
        reported = Checker(tree, filename=path).messages
    except RecursionError:
        return ()
    found = (
        Finding(kind=_KINDS[type(it)], name=str(it.message_args[0]), line=it.lineno)
        for it in reported
        if type(it) in _KINDS
    )
    return tuple(sorted(found, key=lambda it: (it.line, it.name)))


def new_findings(before: str, after: str, *, path: str) -> tuple[Finding, ...]:
    """Return the findings of a changed module that it had not before, wherever they stand."""
    known = Counter((it.kind, it.name) for it in lint(before, path=path))
    new = []
    for finding in lint(after, path=path):
        known[finding.kind, finding.name] -= 1
        if known[finding.kind, finding.name] < 0:
            new.append(finding)
    return tuple(new)


def name_import(binding: Binding) -> str:
    """Return an import as findings name it.

    >>> name_import(Binding(path="a.py", line=1, scope="", name="p", kind="import",
    ...                     module="os", target="path", loaded="os"))
    'os.path as p'
    """
    if binding.module != binding.loaded:  # `import a.b` binds `a`
        return binding.loaded
    full = binding.loaded
    if binding.target:
        full += binding.target if full.endswith(".") else f".{binding.target}"
    return full if binding.name == full.rpartition(".")[2] else f"{full} as {binding.name}"
