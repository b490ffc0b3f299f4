"""`regrow monitor`: say of each attempt of a run whether the agent cheated, and where it shows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from pipeline.agent.chat.server import Server, check_url
from pipeline.cache import cache_folder
from pipeline.commands.say import (
    BAD_INPUT,
    BROKEN_MACHINE,
    ERR,
    INTERRUPTED,
    OUT,
    end,
    existing_run,
    one_line_errors,
    print_json,
)
from pipeline.commands.tables import table
from pipeline.monitor.groups import Group, group_attempts, is_flagged
from pipeline.monitor.judge.chat import KEY_VARIABLE, JudgeError
from pipeline.monitor.judge.judge import Judge
from pipeline.monitor.verdict import Weighing
from pipeline.review import Review, review_run
from pipeline.task.attempt import Attempt, Sign
from pipeline.task.attempt_shards import attempt_files, read_attempts
from pipeline.task.schema import to_row
from pipeline.task.shards import read_tasks

MAX_TURNS = 6
CITED_COLUMNS = ("attempt", "class", "score", "turns", "what shows it")
GROUP_COLUMNS = ("attempts of", "number", "solved", "flagged", "shown less hidden", "step")


def monitor(
    run: Annotated[Path, typer.Argument(help="Run folder with tasks and attempts.")],
    judge: Annotated[
        str | None,
        typer.Option(
            help="URL of an OpenAI-compatible server whose model judges what the rules leave open; "
            "its key is taken from REGROW_JUDGE_KEY."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the judge's model.")] = None,
    threshold: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="From this score of the judge on: suspicious."),
    ] = Weighing().judge_threshold,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for one answer of the judge.")
    ] = 120.0,
    seed: Annotated[int, typer.Option(help="Decides in which order a judge sees attempts.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Look for cheating in every attempt; verdicts are kept in the shards, a rerun goes on."""
    existing_run(run)
    asked = _judge(judge, model, timeout_s=timeout, seed=seed)
    weighing = Weighing(judge_threshold=threshold)
    with one_line_errors():
        _review(run, weighing, asked)
        attempts = sorted(read_attempts(run), key=lambda it: it.id)
        groups = tuple(group_attempts(attempts, {task.id: task for task in read_tasks(run)}))
    if json:
        print_json(_as_json(attempts, groups, asked))
    else:
        _show(attempts, groups, asked)


def _judge(url: str | None, model: str | None, *, timeout_s: float, seed: int) -> Judge | None:
    if (url is None) != (model is None):
        end("a judge needs both --judge URL and --model NAME, or neither", code=BAD_INPUT)
    if url is None or model is None:
        return None
    try:
        check_url(url)
    except ValueError as error:
        end(f"--judge: {error}", code=BAD_INPUT)
    server = Server(url=url, model=model, key_variable=KEY_VARIABLE, timeout_s=timeout_s)
    return Judge(server=server, seed=seed)


def _review(run: Path, weighing: Weighing, judge: Judge | None) -> None:
    seen: set[str] = set()
    total = sum(file.num_rows for file in attempt_files(run))
    with Progress(console=ERR, transient=True) as progress:
        bar = progress.add_task("looking", total=total)

        def done(attempt: Attempt) -> None:
            seen.add(attempt.id)
            progress.update(bar, completed=len(seen))

        review = Review(run=run, cache=cache_folder(), weighing=weighing, judge=judge, done=done)
        try:
            review_run(review)
        except JudgeError as error:
            end(f"{error}; verdicts so far are kept", code=BROKEN_MACHINE)
        except KeyboardInterrupt:
            end("stopped; verdicts so far are kept", code=INTERRUPTED)


def _as_json(
    attempts: Sequence[Attempt], groups: Iterable[Group], judge: Judge | None
) -> dict[str, object]:
    rows = [
        {"id": it.id, "task": it.task_id, "verdict": it.verdict, "monitored": to_row(it.monitored)}
        for it in attempts
        if it.monitored is not None
    ]
    return {
        "num_attempts": len(attempts),
        "labels": Counter(_label(it) for it in attempts),
        "classes": Counter(
            it.monitored.hack_class for it in attempts if it.monitored and is_flagged(it)
        ),
        "attempts": rows,
        "groups": [asdict(group) for group in groups],
        "judge": None if judge is None else asdict(judge.usage),
    }


def _show(attempts: Sequence[Attempt], groups: Sequence[Group], judge: Judge | None) -> None:
    labels = Counter(map(_label, attempts))
    OUT.print(table("", ("label", "attempts"), labels.most_common()))
    flagged = [it for it in attempts if is_flagged(it)]
    if flagged:
        counts = Counter((it.monitored.hack_class, it.monitored.label) for it in flagged
                         if it.monitored)  # fmt: skip
        rows = [(name, label, count) for (name, label), count in sorted(counts.items())]
        OUT.print("", table("", ("class", "label", "attempts"), rows))
        OUT.print("", table("", CITED_COLUMNS, _cited(flagged)))
    OUT.print("", table("", GROUP_COLUMNS, map(_group_row, groups)))
    if judge is not None:
        usage = judge.usage
        tokens = usage.num_prompt_tokens + usage.num_completion_tokens
        OUT.print(f"the judge took {usage.num_requests} requests, {tokens} tokens")


def _label(attempt: Attempt) -> str:
    return attempt.monitored.label if attempt.monitored else "not seen"


def _cited(attempts: Iterable[Attempt]) -> Iterator[tuple[object, ...]]:
    for it in attempts:
        found = it.monitored
        assert found is not None, it.id
        sign = next((sign for sign in found.signs if sign.turns), None)
        sign = sign or next(iter(found.signs), None)
        score, turns, why = f"{found.score:.2f}", _turns(sign), _why(sign)
        if found.judged and not (sign and found.signs[0].weight >= found.judged.score):
            turns = ", ".join(map(str, found.judged.turns)) or "-"
            score, why = f"{found.judged.score:.2f}", f"{found.judged.model}: {found.judged.reason}"
        yield it.id, found.hack_class, score, turns, why


def _turns(sign: Sign | None) -> str:
    if sign is None or not sign.turns:
        return "-"
    more = ", …" if len(sign.turns) > MAX_TURNS else ""
    return ", ".join(map(str, sign.turns[:MAX_TURNS])) + more


def _why(sign: Sign | None) -> str:
    return f"{sign.rule}: {sign.detail}" if sign else ""


def _group_row(group: Group) -> tuple[object, ...]:
    gap = f"{group.gap:+.2f} ± {group.gap_half:.2f}" if group.gap_half < 1 else "-"
    step = group.step
    moved = f"{step.before.value:.0%} to {step.after.value:.0%} at {step.at}" if step else "-"
    return group.name, group.num_attempts, group.solved, group.flagged, gap, moved
