"""Put a Finding into words for the policy: short, of what is right, with nothing given away."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import jinja2

from trainer.feedback.course import course_of
from trainer.records import Episode, Finding

TEMPLATES = Path(__file__).parents[2] / "task_templates" / "hints"
SUFFIX = ".md.j2"

# Words and signs, besides the names that it lists.
MAX_TOKENS = 60
# Names in one list, and letters of one name.
MAX_NAMES, MAX_NAME_CHARS = 40, 200
# Letters of a fact that is no list: a signature, a judge's hint.
MAX_FACT_CHARS = 600
# A shorter line may stand in any text by chance.
MIN_TELLING_CHARS = 12

_TOKEN = re.compile(r"\w+|[^\w\s]")
# Of arguments: what they hold are names.
_NAMING = frozenset({"path", "paths", "ids", "modules"})
# Between the texts of a call that cannot be read, and between their lines.
_BETWEEN = re.compile(r'\\n|\\?"|\n')
# Words about what went before.
_LOOKS_BACK = re.compile(
    r"\byou(?:'ve| have| had)?(?: just)? (?:called|tried|wrote|used|forgot|made|did|were|failed)\b"
    r"|\b(?:previous|last|earlier|failed) (?:attempt|call|try)\b|\binstead of\b",
    re.IGNORECASE,
)


def kinds_with_hints() -> frozenset[str]:
    """Return the kinds of Finding that a template puts into words."""
    return frozenset(path.name.removesuffix(SUFFIX) for path in TEMPLATES.glob(f"*{SUFFIX}"))


def hint(finding: Finding, episode: Episode) -> str | None:
    """Return the hint for a Finding; None where there is none, or none that may be given."""
    if finding.kind not in kinds_with_hints():
        return None
    text = " ".join(_template(finding.kind).render(_facts(finding)).split())
    return None if lint(text, finding, episode) else text


def lint(text: str, finding: Finding, episode: Episode) -> str:
    """Return why a hint must not be given; empty for a good one.

    It is too long without the names that it lists, it looks back at what went wrong, or it holds
    a line of a file, of a call, of a message, or of the work.
    """
    body = text
    for name in sorted(_names(_facts(finding)), key=len, reverse=True):
        body = body.replace(name, " ")
    num_tokens = len(_TOKEN.findall(body))
    if not num_tokens or num_tokens > MAX_TOKENS:
        return f"{num_tokens} words and signs, expected 1 to {MAX_TOKENS}"
    if found := _LOOKS_BACK.search(body):
        return f"it looks back: {found[0]!r}"
    squeezed = "".join(body.split())
    for line in _foreign_lines(episode):
        if line in squeezed:
            return f"it gives away {line!r}"
    return ""


@cache
def _template(kind: str) -> jinja2.Template:
    environment = jinja2.Environment(  # noqa: S701  a text for a model, no web page
        undefined=jinja2.StrictUndefined
    )
    return environment.from_string((TEMPLATES / f"{kind}{SUFFIX}").read_text())


def _facts(finding: Finding) -> dict[str, object]:
    """Return the facts, without names that could say more than a name does."""
    return {key: _clean(value) for key, value in finding.facts.items()}


def _clean(value: object) -> object:
    if isinstance(value, str):
        return " ".join(value.split())[:MAX_FACT_CHARS]
    if isinstance(value, list | tuple):
        return [it for it in value if isinstance(it, str) and _is_name(it)][:MAX_NAMES]
    return value


def _is_name(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME_CHARS and text.isprintable()


def _names(facts: Mapping[str, object]) -> Iterator[str]:
    """Yield what a hint may hold besides its words; of a judge's there is nothing."""
    for key, value in facts.items():
        if isinstance(value, list):
            yield from value
        elif isinstance(value, str) and key != "hint" and value:
            yield value


def _foreign_lines(episode: Episode) -> Iterator[str]:
    """Yield telling lines that stand anywhere in an Episode, without white space."""
    for text in _foreign_texts(episode):
        for line in text.split("\n"):
            squeezed = "".join(line.split())
            if len(squeezed) >= MIN_TELLING_CHARS:
                yield squeezed


def _foreign_texts(episode: Episode) -> Iterator[str]:
    """Yield what tools gave back, what calls wrote, what was said, and what the work adds."""
    course = course_of(episode)
    for turn in course.turns:
        yield turn.reply.text
    for act in course.acts:
        yield act.output
        yield from _texts_in(act.arguments)
        if act.call.arguments is None:
            yield from _BETWEEN.split(act.call.raw)
    # A diff sets a sign before each line.
    yield from (line[1:] for line in episode.patch.split("\n") if line[:1] in {"+", "-"})


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts in arguments, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        inners = (inner for key, inner in value.items() if key not in _NAMING)
        yield from (text for inner in inners for text in _texts_in(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in _texts_in(inner))
