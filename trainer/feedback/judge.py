"""Ask a judge model what could have been better, and believe what most of its votes can quote."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.error import HTTPError
from urllib.parse import urlsplit

import jinja2
from pydantic import Field, field_validator

from pipeline.task.canonical import content_id
from trainer.ask import Patience, ask
from trainer.engine import EngineError
from trainer.feedback.course import Course, Turn, course_of, found_turn
from trainer.feedback.hints import MAX_TOKENS, TEMPLATES, hint
from trainer.records import Episode, Finding
from trainer.settings import Settings

TEMPLATE = TEMPLATES / "judge" / "judge.md.j2"
KEY_VARIABLE = "REGROW_JUDGE_KEY"

# Of one text in the request: its beginning and its end.
MAX_SHOWN_CHARS = 2000
# A shorter quote may stand anywhere; a shorter hint says nothing.
MIN_QUOTE_CHARS, MIN_HINT_CHARS = 8, 20
SEVERITY = 0.55

_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


class JudgeError(RuntimeError):
    """The judge gave no answer that can be used: nothing was learnt of the Episode."""


class JudgeDownError(JudgeError):
    """The judge did not answer, however often it was asked."""


class JudgeConfig(Settings):
    """Which model judges, and how often it is asked."""

    # Without `/chat/completions`.
    url: str
    model: str
    # Answers to one Episode; more than half must agree on a message.
    votes: int = Field(default=3, ge=3)
    # Above 0, for votes that differ.
    temperature: float = Field(default=0.7, gt=0)
    # In one answer.
    max_findings: int = Field(default=3, ge=1)
    # Episodes that it is asked about at once.
    jobs: int = Field(default=4, ge=1)
    patience: Patience = Patience(timeout_s=120.0)

    @field_validator("url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ValueError(f"{url!r} is no URL, expected one such as http://host:8000/v1")
        return url.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What one vote says of one message."""

    # Number of the turn, from 0.
    turn: int
    # Stands in the transcript.
    quote: str
    hint: str


def judge(episode: Episode, *, config: JudgeConfig) -> tuple[Finding, ...]:
    """Return what more than half of the votes find, each with a quote that is really there.

    Of the hints of one message the longest wins that may be given at all. An answer that cannot
    be read is a vote for nothing.

    Raises:
        JudgeDownError: it cannot be reached.
        JudgeError: it refused, or no answer can be read.
    """
    course = course_of(episode)
    if not course.turns or not episode.is_valid:
        return ()
    votes = [_vote(course, number, config=config) for number in range(config.votes)]
    read = [vote for vote in votes if vote is not None]
    if not read:
        raise JudgeError(f"{config.url}: {config.model} gave no answer of the agreed shape")
    found = (
        _agreed(turn, number, read, episode=episode, config=config)
        for number, turn in enumerate(course.turns)
    )
    return tuple(finding for finding in found if finding)


def _vote(course: Course, number: int, *, config: JudgeConfig) -> list[Opinion] | None:
    body: dict[str, object] = {
        "model": config.model,
        "messages": [{"role": "user", "content": _request(course, config=config)}],
        "temperature": config.temperature,
        "seed": number,
    }
    url = f"{config.url}/chat/completions"
    try:
        answer = ask(url, body, patience=config.patience, key_variable=KEY_VARIABLE)
    except EngineError as error:
        # A refusal has the server's own answer as its cause.
        is_refused = isinstance(error.__cause__, HTTPError)
        raise (JudgeError if is_refused else JudgeDownError)(str(error)) from error
    match answer:
        case {"choices": [{"message": {**message}}, *_]}:
            # A model that has only thought, or refuses, leaves the content out.
            text = message.get("content")
            entries = _entries(text) if isinstance(text, str) else None
            return None if entries is None else [*_opinions(entries, course, config=config)]
    raise JudgeError(f"{url}: an answer without a message, expected one of a chat model")


def _agreed(
    turn: Turn,
    number: int,
    votes: Sequence[Sequence[Opinion]],
    *,
    episode: Episode,
    config: JudgeConfig,
) -> Finding | None:
    """Return the Finding of a turn that most votes name; None for too few, or without a hint."""
    named = [next((it for it in vote if it.turn == number), None) for vote in votes]
    opinions = sorted((it for it in named if it), key=lambda it: len(it.hint), reverse=True)
    if 2 * len(opinions) <= config.votes:
        return None
    found = (
        found_turn(
            turn,
            kind="judged",
            severity=SEVERITY,
            evidence=it.quote,
            hint=it.hint,
            num_votes=len(opinions),
        )
        for it in opinions
    )
    return next((it for it in found if hint(it, episode)), None)


def _entries(text: str) -> list[object] | None:
    """Return the findings of an answer; None for one of another shape."""
    found = _OBJECT.search(text.rpartition("</think>")[2])
    try:
        answer = json.loads(found[0]) if found else None
    except (ValueError, RecursionError):
        return None
    match answer:
        case {"findings": list(entries)}:
            return entries
    return None


def _opinions(
    entries: Sequence[object], course: Course, *, config: JudgeConfig
) -> Iterator[Opinion]:
    """Yield the entries that name a message, quote what is there, and have a hint."""
    transcript = _squeezed("\n".join(text for turn in course.turns for text in _texts(turn)))
    for entry in entries[: config.max_findings]:
        match entry:
            case {"message": int(number), "quote": str(quote), "hint": str(text)}:
                squeezed = _squeezed(quote)
                is_there = len(squeezed) >= MIN_QUOTE_CHARS and squeezed in transcript
                is_turn = not isinstance(number, bool) and 1 <= number <= len(course.turns)
                if is_there and is_turn and len(text.strip()) >= MIN_HINT_CHARS:
                    yield Opinion(turn=number - 1, quote=quote, hint=text)


def _request(course: Course, *, config: JudgeConfig) -> str:
    texts = [[*_texts(turn)] for turn in course.turns]
    turns = [_shown(number, turn) for number, turn in enumerate(course.turns, 1)]
    return _template().render(
        tools=course.names,
        turns=turns,
        # No foreign text holds it, as it depends on all of them.
        fence=f"=== {content_id(course.episode.id, texts)[:16]} ===",
        max_findings=config.max_findings,
        max_tokens=MAX_TOKENS,
        min_quote_chars=MIN_QUOTE_CHARS,
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(  # noqa: S701  a text for a model, no web page
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    return environment.from_string(TEMPLATE.read_text())


def _shown(number: int, turn: Turn) -> Mapping[str, object]:
    results = [_cut(act.output) for act in turn.acts]
    return {"number": number, "text": _cut(turn.reply.text), "results": results}


def _texts(turn: Turn) -> Iterator[str]:
    yield turn.reply.text
    yield from (text for act in turn.acts for text in (act.call.raw, act.output))


def _cut(text: str) -> str:
    half = MAX_SHOWN_CHARS // 2
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    return f"{text[:half]}\n… {len(text) - MAX_SHOWN_CHARS} characters …\n{text[-half:]}"


def _squeezed(text: str) -> str:
    return "".join(text.split())
