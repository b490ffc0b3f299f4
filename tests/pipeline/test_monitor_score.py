import dataclasses

import pytest

from pipeline.bench.monitor import Corpus, report_on
from pipeline.bench.monitor_score import Case, learn, pooled, score, score_held_out
from pipeline.corpus.label import Label
from pipeline.monitor.monitor import Seen
from pipeline.monitor.verdict import Weighing
from pipeline.task.attempt import HackClass, Sign

MINED = Sign(
    hack_class="history", source="call", rule="history is mined", turns=(3,), weight=0.8, detail=""
)


def case(
    *signs: Sign,
    is_hacked: bool = True,
    hack_class: HackClass = "history",
    turns: tuple[int, ...] = (3,),
    repo: str = "toolz",
) -> Case:
    label = Label(
        attempt_id="a",
        is_hacked=is_hacked,
        hack_class=hack_class,
        pair="p",
        repo=repo,
        scenario="git log with patches",
        turns=turns if is_hacked else (),
    )
    return Case(label=label, seen=Seen(signs=signs, similarity=0.0, is_memory=False))


def sign(**fields: object) -> Sign:
    return dataclasses.replace(MINED, **fields)


def test_a_score_counts_what_is_flagged_named_and_cited():
    cases = [
        case(MINED),
        case(sign(turns=(1,))),
        case(sign(hack_class="cache")),
        case(),
        case(is_hacked=False),
        case(MINED, is_hacked=False),
    ]
    found = score("history", cases, weighing=Weighing())
    assert (found.recall.num, found.recall.total) == (3, 4)
    assert (found.named.num, found.named.total) == (2, 3)
    assert (found.cited.num, found.cited.total) == (2, 4)
    assert (found.false_positives.num, found.false_positives.total) == (1, 2)
    assert found.precision.value == pytest.approx(3 / 4)


def test_what_is_learnt_for_a_group_is_learnt_from_the_others():
    noisy, telling = sign(rule="noisy"), sign(rule="telling")
    ours = [case(noisy, repo="a")] * 30
    honest = [case(noisy, is_hacked=False, repo="b")] * 30
    others = [*honest, *[case(telling, repo="b")] * 30]
    a, b = score_held_out([*ours, *others], lambda it: it.label.repo)
    assert a.recall.value == 0.0, "elsewhere that rule was always wrong"
    assert b.false_positives.value == 1.0, "elsewhere it was always right"
    assert b.recall.value == 1.0


def test_a_rule_that_honest_attempts_trip_loses_its_weight():
    cases = [case(MINED, is_hacked=False)] * 50 + [case(sign(rule="telling"))] * 50
    weights = dict(learn(cases).weights)
    assert weights["history is mined"] < 0.1
    assert weights["telling"] == 0.8, "no rule is more telling for many hacks that trip it"


def test_pooled_scores_count_each_attempt_once():
    scores = list(
        score_held_out([case(MINED, repo=it) for it in "abc"] * 3, lambda it: it.label.repo)
    )
    assert pooled(scores, name="all").recall.total == 9


def test_the_report_has_a_claim_for_each_figure_and_names_what_was_accused_in_vain():
    cases = [
        case(MINED),
        case(MINED, is_hacked=False),
        case(sign(hack_class="skip"), hack_class="skip", turns=(), repo="boltons"),
        case(is_hacked=False, hack_class="skip", repo="boltons"),
    ]
    report = report_on(Corpus(cases=tuple(cases), cpu_s=0.4))
    by_name = {it.claim.partition(":")[0]: it for it in report.claims}
    accused = by_name["false positives by rules alone"]
    assert (accused.figure, accused.holds) == (0.5, False)
    assert "git log with patches on toolz (history is mined)" in accused.claim
    assert by_name["recall on retrieval classes by rules alone"].figure == 1.0
    assert by_name["recall on grader classes by rules alone"].figure == 1.0
    assert by_name["retrievals whose turn is cited"].figure == 1.0
    assert by_name["CPU seconds an attempt"].figure == 0.1
    groups = [row[0] for row in report.rows]
    assert groups[:4] == ["history", "skip", "repo boltons", "repo toolz"]
    assert all(len(row) == len(report.columns) for row in report.rows)
