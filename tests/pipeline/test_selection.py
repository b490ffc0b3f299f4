"""Who tries which candidate when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.selection import (
    MAX_TRIES,
    Choice,
    choose,
    deal_slots,
    drop_overlaps,
    order_features,
)
from pipeline.task.record import Feature, FeatureKind, Symbol


def feature(
    name: str,
    kind: FeatureKind = "function",
    *,
    num_lines: int = 5,
    lines: tuple[int, int] = (1, 9),
    path: str = "",
) -> Feature:
    symbol = Symbol(
        path=path or f"{name}.py",
        qualname=name,
        kind="function",
        first_line=lines[0],
        last_line=lines[1],
    )
    return Feature(
        title=f"a.{name}",
        kind=kind,
        symbols=(symbol,),
        constants=(),
        tests=("t",),
        group="`t`",
        num_lines=num_lines,
        num_modules=1,
        exclusivity=1.0,
        cohesion=1.0,
    )


KINDS: tuple[tuple[FeatureKind, int], ...] = (("class", 2), ("function", 12), ("method", 5))


FEATURES = tuple(
    feature(f"{kind}{number}", kind) for kind, count in KINDS for number in range(count)
)


def test_the_order_depends_on_the_seed_alone():
    order = order_features(FEATURES, repo="small", seed=1)
    assert sorted(it.title for it in order) == sorted(it.title for it in FEATURES)
    assert order == order_features(FEATURES[::-1], repo="small", seed=1)
    assert order != order_features(FEATURES, repo="small", seed=2)
    assert order != order_features(FEATURES, repo="other", seed=1)


def test_the_kinds_take_turns():
    kinds = [it.kind for it in order_features(FEATURES, repo="small", seed=0)]
    assert kinds[:6] == ["class", "function", "method"] * 2
    assert kinds[-7:] == ["function"] * 7


def test_one_candidate_more_or_less_does_not_reorder_the_others():
    order = order_features(FEATURES, repo="small", seed=3)
    for gone in FEATURES:
        rest = [it for it in FEATURES if it != gone]
        functions = [it for it in order if it != gone and it.kind == "function"]
        again = order_features(rest, repo="small", seed=3)
        assert [it for it in again if it.kind == "function"] == functions


@given(num=st.integers(0, 60), max_tasks=st.none() | st.integers(1, 20))
def test_slots_and_spares_are_a_partition(num: int, max_tasks: int | None):
    features = tuple(feature(f"f{number}") for number in range(num))
    slots, spare = deal_slots(features, max_tasks=max_tasks)
    dealt = [it.title for slot in slots for it in slot]
    spares = [it.subject for it in spare]
    assert sorted(dealt + spares) == sorted(it.title for it in features)
    assert all(slots)
    assert all(len(slot) <= MAX_TRIES for slot in slots)
    assert len(slots) == (num if max_tasks is None else min(num, max_tasks))
    # The first candidates are the first to be tried.
    assert [slot[0] for slot in slots] == list(features[: len(slots)])
    assert {(it.reject.stage, it.reject.reason) for it in spare} <= {("selection", "not_tried")}


def test_in_a_kind_the_sizes_take_turns():
    sizes = [5, 5, 5, 20, 20, 80]
    features = [feature(f"f{at}", num_lines=size) for at, size in enumerate(sizes)]
    order = [it.num_lines for it in order_features(features, repo="small", seed=0)]
    assert sorted(order[:3]) == [5, 20, 80]
    assert sorted(order[3:5]) == [5, 20]


@pytest.mark.parametrize(
    ("choice", "titles", "detail"),
    [
        (Choice(), {"a.f", "a.c", "a.m"}, ""),
        (Choice(kinds=("class", "module")), {"a.c", "a.m"}, "it is a function"),
        (Choice(sizes=("large",)), {"a.m"}, "it is small: 5 lines of code"),
        (Choice(kinds=("class",), sizes=("large",)), set(), "it is a function"),
    ],
)
def test_only_what_is_wanted_is_tried(choice: Choice, titles: set[str], detail: str):
    features = [
        feature("f"),
        feature("c", "class", num_lines=15),
        feature("m", "module", num_lines=60),
    ]
    found = choose(features, choice, repo="small")
    assert {it.title for it in found.features} == titles
    rejects = {it.subject: it.reject for it in found.left_out}
    assert {it.subject for it in found.left_out} == {"a.f", "a.c", "a.m"} - titles
    assert (
        (rejects["a.f"].reason, rejects["a.f"].detail) == ("not_wanted", detail)
        if detail
        else (not rejects)
    )


def test_of_what_is_mostly_the_same_code_the_first_is_tried():
    whole = feature("whole", lines=(1, 100), path="a.py")
    most = feature("most", lines=(1, 60), path="a.py")
    part = feature("part", lines=(1, 40), path="a.py")
    apart = feature("apart", lines=(1, 100), path="b.py")
    found = drop_overlaps([whole, most, part, apart])
    assert [it.title for it in found.features] == ["a.whole", "a.part", "a.apart"]
    assert [(it.subject, it.reject.reason, it.reject.detail) for it in found.left_out] == [
        ("a.most", "overlaps", "with a.whole")
    ]
