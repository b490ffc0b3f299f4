import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.trainer.feedback.episodes import call, episode, says
from trainer.engine import Generated, Request
from trainer.feedback.scan import scan
from trainer.records import Ids, Target, ToolCall
from trainer.repair import Repair, RepairConfig, Trial, hinted_context, try_hints

HINT = np.array([7, 7, 7])
CONFIG = RepairConfig(tries=3)


class Scripted:
    """Says what a script says, one letter a token; asked contexts are kept."""

    version = 4

    def __init__(self, script: Callable[[Request], str]) -> None:
        self._script = script
        self.asked: list[Request] = []

    def generate(self, requests: Sequence[Request]) -> list[Generated]:
        self.asked += requests
        said = [np.frombuffer(self._script(it).encode(), dtype=np.uint8) for it in requests]
        return [
            Generated(ids=it.astype(np.int64), logprobs=-np.ones(len(it)), stop="end", version=4)
            for it in said
        ]

    def sync(self, *_: Any, **__: Any) -> None: ...

    def close(self) -> None: ...


class Letters:
    """Reads a message that is one call and nothing else."""

    stop_ids = (10,)

    def parse(self, reply: Ids) -> tuple[str, tuple[ToolCall, ...]]:
        raw = bytes(reply.tolist()).decode()
        made = ToolCall(**json.loads(raw), raw=raw, error="", start=0, end=len(raw))
        return "", (made,)


def said(name: str, **arguments: str) -> str:
    return json.dumps({"name": name, "arguments": arguments})


WRONG, RIGHT = said("open", path="a.py"), said("read_file", path="a.py")


def trial() -> Trial:
    """The second Reply calls a tool that is not there."""
    made = episode(
        says("", call("read_file", "x = 1", path="b.py")),
        says("", call("open", "no such tool", ok=False, path="a.py")),
        says("Done."),
    )
    (finding,) = [it for it in scan(made) if it.kind == "unknown_tool"]
    reply = made.segments[0].replies[1]
    target = Target(
        reply=1, kind=finding.kind, hint_ids=HINT, hint="", start=reply.start, end=reply.end
    )
    return Trial(episode=made, finding=finding, target=target)


def run(
    *trials: Trial, script: Callable[[Request], str], max_context_tokens: int = 10_000
) -> tuple[list[Repair | None], Scripted]:
    engine = Scripted(script)
    found = try_hints(
        trials,
        engine=engine,
        reader=Letters(),
        config=CONFIG,
        max_context_tokens=max_context_tokens,
        seed=0,
    )
    return found, engine


def is_hinted(request: Request) -> bool:
    return bool((request.ids == HINT[0]).sum() >= len(HINT))


def test_a_hint_that_mends_the_fault_passes_and_gives_a_canary() -> None:
    one = trial()
    (repair,), engine = run(one, script=lambda it: RIGHT if is_hinted(it) else WRONG)
    assert repair is not None
    assert (repair.hinted, repair.plain, repair.passes) == (1.0, 0.0, True)
    assert repair.canary is not None
    assert bytes(repair.canary.good_ids.tolist()).decode() == RIGHT
    assert np.array_equal(repair.canary.context_ids, engine.asked[0].ids)


def test_a_hint_that_changes_nothing_does_not_pass() -> None:
    (repair,), _ = run(trial(), script=lambda _: WRONG)
    assert repair is not None
    assert (repair.hinted, repair.passes, repair.canary) == (0.0, False, None)


def test_a_fault_that_the_policy_does_not_repeat_needs_no_hint() -> None:
    (repair,), _ = run(trial(), script=lambda _: RIGHT)
    assert repair is not None
    assert (repair.hinted, repair.plain, repair.passes) == (1.0, 1.0, False)


def test_the_contexts_are_the_history_with_the_hint_before_the_header_and_without_it() -> None:
    one = trial()
    _, engine = run(one, script=lambda _: RIGHT)
    seg = one.episode.segments[0]
    reply = seg.replies[1]
    hinted = [*seg.ids[: reply.header], *HINT, *seg.ids[reply.header : reply.start]]
    assert [it.ids.tolist() for it in engine.asked[:3]] == [hinted] * 3
    assert [it.ids.tolist() for it in engine.asked[3:]] == [seg.ids[: reply.start].tolist()] * 3
    assert len({it.seed for it in engine.asked}) == 6


def test_what_a_judge_found_is_not_tried_and_shifts_no_other_trial() -> None:
    one = trial()
    judged = replace(one, finding=replace(one.finding, kind="judged"))
    found, engine = run(judged, one, script=lambda it: RIGHT if is_hinted(it) else WRONG)
    assert found[0] is None
    assert found[1] is not None
    assert found[1].passes
    assert len(engine.asked) == 6


def test_a_hint_is_not_tried_where_an_answer_after_it_does_not_fit() -> None:
    one = trial()
    needed = len(hinted_context(one)) + CONFIG.max_new_tokens
    (tried,), _ = run(one, script=lambda _: WRONG, max_context_tokens=needed)
    (left,), engine = run(one, script=lambda _: WRONG, max_context_tokens=needed - 1)
    assert tried is not None
    assert left is None
    assert engine.asked == []
