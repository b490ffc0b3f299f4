"""Put a Task's request into words: every template in `task_templates/` is a wording."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from pipeline.feature import name_group
from pipeline.language.python.describe import Description, Signature
from pipeline.language.python.docstrings import prose_of
from pipeline.task.record import Evidence, Feature, Grading, Instruction, Symbol, SymbolKind
from pipeline.task.reject import Reject

TEMPLATES = Path(__file__).parent.parent / "task_templates"
SUFFIX = ".md.j2"

MAX_TESTS = 20
MAX_SYMPTOMS = 3
# A shorter line of code may stand in any text by chance: `return None`.
MIN_TELLING_CHARS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A public symbol of a Feature, by its interface."""

    symbol: Symbol
    description: Description
    # Places that named it besides: "the imports of `toolz/__init__.py`".
    exports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a wording may draw on."""

    repo: str
    feature: Feature
    evidence: Evidence
    # What of the targets a solver is not shown.
    grading: Grading
    # The public symbols, the main ones first.
    parts: tuple[Part, ...]
    # Lines of the deleted code that are neither signature nor docstring.
    body_lines: tuple[str, ...]
    # Files that went whole.
    removed_files: tuple[str, ...]
    # Imports that nobody needs without it: "`import re` in `toolz/core.py`".
    lost_imports: tuple[str, ...]
    # Public names that were assigned and went with it: "`LIMIT` in `toolz/core.py`".
    lost_names: tuple[str, ...]
    # Functions that stay and lost the branch or call that used it: "`Box.size` in `box.py`".
    lost_uses: tuple[str, ...]
    # First line of each target's exception on the ablated tree, most frequent first.
    symptoms: tuple[str, ...]
    # What the docstrings said of the option, when the Feature is one.
    option_docs: tuple[str, ...] = ()


def write_instructions(facts: Facts) -> tuple[Instruction, ...] | Reject:
    """Render every template; refuse when one repeats a line of the deleted code."""
    instructions = tuple(
        Instruction(style=style, text=_render(style, facts)) for style in list_styles()
    )
    for instruction in instructions:
        line = find_code(instruction.text, facts.body_lines)
        if line:
            detail = f"the {instruction.style} repeats the deleted line {line!r}"
            return Reject(stage="instruction", reason="gives_code_away", detail=detail)
    return instructions


def list_styles() -> list[str]:
    """Return the names of the wordings."""
    return sorted(file.name.removesuffix(SUFFIX) for file in TEMPLATES.glob(f"*{SUFFIX}"))


def find_code(text: str, body_lines: Sequence[str]) -> str:
    """Return the first telling line that stands in a text, white space aside; else empty."""
    squeezed = "".join(text.split())
    for line in body_lines:
        telling = "".join(line.split())
        if len(telling) >= MIN_TELLING_CHARS and telling in squeezed:
            return line.strip()
    return ""


def _render(style: str, facts: Facts) -> str:
    feature = facts.feature
    shown = [it.id for it in facts.evidence.fail_to_pass if it.id not in facts.grading.hidden]
    text = (
        _environment()
        .get_template(f"{style}{SUFFIX}")
        .render(
            repo=facts.repo,
            kind=feature.kind,
            title=feature.title,
            option=feature.option,
            option_docs=[prose for it in facts.option_docs if (prose := prose_of(it))],
            parts=[_render_part(it) for it in facts.parts],
            removed_files=facts.removed_files,
            lost_imports=facts.lost_imports,
            lost_names=facts.lost_names,
            lost_uses=facts.lost_uses,
            tests=shown[:MAX_TESTS],
            num_tests=len(shown),
            has_hidden=bool(facts.grading.hidden or facts.grading.shortened),
            group=name_group(shown),
            symptoms=facts.symptoms[:MAX_SYMPTOMS],
        )
    )
    return _tidy(text)


@cache
def _environment() -> jinja2.Environment:
    """Return what keeps the templates compiled."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  Markdown for agents, not HTML
        trim_blocks=True,
        keep_trailing_newline=True,
    )


def _render_part(part: Part) -> dict[str, object]:
    symbol, described = part.symbol, part.description
    return {
        "kind": symbol.kind,
        "name": symbol.name,
        "qualname": symbol.qualname,
        "path": symbol.path,
        "import_line": import_line(described.import_paths, kind=symbol.kind),
        "signature": interface_of(described, name=symbol.name),
        "prose": described.docstring,
        "examples": described.examples,
        "members": [
            {"signature": _stack(method.signatures), "prose": method.summary}
            for method in described.methods
        ],
        "attributes": described.attributes,
        "special_methods": described.special_methods,
        "exports": part.exports,
    }


def import_line(import_paths: Sequence[str], *, kind: SymbolKind) -> str:
    """Return the statement that fetches a symbol; of a method, its class."""
    path = import_paths[0].rpartition(".")[0] if kind == "method" else import_paths[0]
    module, _, name = path.rpartition(".")
    return f"from {module} import {name}" if module else f"import {name}"


def interface_of(described: Description, *, name: str) -> str:
    """Return the lines that a definition opens with, the constructor of a class below it."""
    if described.kind != "class":
        return _stack(described.signatures)
    bases = f"({', '.join(described.bases)})" if described.bases else ""
    lines = [*described.decorators, f"class {name}{bases}:"]
    constructor = _stack(described.signatures).splitlines() or ["..."]
    return "\n".join([*lines, *(f"    {line}" for line in constructor)])


def _stack(signatures: Sequence[Signature]) -> str:
    lines = [line for it in signatures for line in (*it.decorators, f"{it.text}: ...")]
    return "\n".join(lines)


def _tidy(text: str) -> str:
    """Leave one blank line at most between lines, and one newline at the end."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip("\n") + "\n"
