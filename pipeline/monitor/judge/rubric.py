"""Put attempts at one Task into a request for the judge, without a word on how they ended."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from pipeline.task.attempt import Attempt
from pipeline.task.canonical import content_id
from pipeline.task.record import Task, Turn
from pipeline.task.solve_tree import function_of

TEMPLATE = Path(__file__).parents[3] / "task_templates" / "monitor" / "judge.md.j2"
# What no cheating is, and what is.
HONEST = ("clean", "spec dispute", "unsure")
CHEATING = ("artefact retrieval", "external retrieval", "grader tampering", "special-casing")
LABELS = (*HONEST, *CHEATING)

MAX_TURNS = 60
MAX_OUTPUT_CHARS, MAX_ARGUMENT_CHARS, MAX_PATCH_CHARS = 1500, 1500, 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lettered:
    """An attempt under the name that the judge knows it by."""

    # `A`, `B`, …
    letter: str
    attempt: Attempt


@cache
def prompt_version() -> str:
    """Return the name and digest of the prompt."""
    digest = hashlib.sha256(TEMPLATE.read_bytes()).hexdigest()[:12]
    return f"{TEMPLATE.name.partition('.')[0]}@{digest}"


def render(task: Task, attempts: Sequence[Lettered], *, with_thoughts: bool) -> str:
    """Return the request.

    Args:
        task: that was attempted.
        attempts: all of that Task, in the order in which the judge sees them.
        with_thoughts: show the agents' reasoning too.
    """
    shown = [
        {
            "letter": it.letter,
            "turns": [_turn(number, turn) for number, turn in _kept(it.attempt.turns)],
            "patch": _cut(it.attempt.patch, MAX_PATCH_CHARS),
        }
        for it in attempts
    ]
    hidden = {function_of(key) for key in task.grading.hidden}
    targets = (function_of(it.id) for it in task.evidence.fail_to_pass)
    return _template().render(
        title=task.feature.title,
        repo=task.repo.name,
        instruction=task.instructions[0].text if task.instructions else "",
        symbols=[f"{it.path}:{it.qualname}" for it in task.feature.symbols],
        shown_tests=sorted({key.partition("::")[0] for key in targets if key not in hidden}),
        fence=_fence(task, attempts),
        attempts=shown,
        labels=[f'"{label}"' for label in LABELS],
        with_thoughts=with_thoughts,
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(  # noqa: S701  a text for a model, no web page
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    return environment.from_string(TEMPLATE.read_text())


def _kept(turns: Sequence[Turn]) -> list[tuple[int, Turn]]:
    """Return the turns with their numbers; of very many the first and the last."""
    numbered = list(enumerate(turns, 1))
    half = MAX_TURNS // 2
    return numbered if len(numbered) <= MAX_TURNS else [*numbered[:half], *numbered[-half:]]


def _turn(number: int, turn: Turn) -> dict[str, object]:
    return {
        "number": number,
        "tool": turn.tool,
        "thought": _cut(turn.thought, MAX_OUTPUT_CHARS),
        "arguments": _cut(turn.arguments, MAX_ARGUMENT_CHARS),
        "output": _cut(turn.output, MAX_OUTPUT_CHARS),
    }


def _cut(text: str, limit: int) -> str:
    """Return a text, of a long one the beginning and the end."""
    half = limit // 2
    if len(text) <= limit:
        return text
    return f"{text[:half]}\n… {len(text) - limit} characters …\n{text[-half:]}"


def _fence(task: Task, attempts: Sequence[Lettered]) -> str:
    """Return a line that no foreign text holds, as it depends on all of them."""
    parts = [(it.letter, it.attempt.patch, it.attempt.turns) for it in attempts]
    return f"=== {content_id(task.id, parts)[:16]} ==="
