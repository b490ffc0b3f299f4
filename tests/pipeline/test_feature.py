"""Which definitions become candidates, why the others do not, and who tries them when."""

from collections.abc import Mapping
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.feature import (
    MAX_TRIES,
    Found,
    deal_slots,
    find_features,
    name_group,
    order_features,
)
from pipeline.task.record import Baseline, Feature, Symbol
from pipeline.trace import Trace

BODY = "    x = 1\n    y = x\n    return y\n"

CORE = f"""\
def good():
{BODY}
def small():
    '''Long.

    As a docstring.
    '''
    return 1

def unreached():
{BODY}
def early():
{BODY}
def collected():
{BODY}
def popular():
{BODY}
def scattered():
{BODY}
def helper():
{BODY}
def _private():
{BODY}
class Box:
    def open(self):
{indent(BODY, "    ")}
    def close(self):
{indent(BODY, "    ")}
"""
SOURCES = {
    "src/pkg/__init__.py": "from pkg.core import good, helper\n",
    "src/pkg/core.py": CORE,
    "src/pkg/other.py": "from pkg.core import helper\n\ndef user():\n    return helper()\n",
    "src/apart/lib.py": f"def foreign():\n{BODY}",
    "tests/helpers.py": f"def of_tests():\n{BODY}",
}
IDS = tuple(f"tests/test_{name}.py::test_{number}" for name in "abcdef" for number in range(5))
PATH = "src/pkg/core.py"


def found_with(reached: Mapping[str, tuple[str, ...]], early: tuple[str, ...] = ()) -> Found:
    """Find features by what the tests reach: ids by qualified name in the core module."""
    trace = Trace(
        tests={(PATH, name): ids for name, ids in reached.items()},
        names={PATH: frozenset(reached) | frozenset(early)},
        early=frozenset((PATH, name) for name in early),
        cpu_ratio=1.0,
    )
    baseline = Baseline(
        passing=IDS,
        quarantined=(),
        durations_s=(0.0,) * len(IDS),
        cpu_s=(1.0,),
        num_runs=1,
        plugins=(),
        alarms=(),
    )
    return find_features(SOURCES, trace=trace, baseline=baseline, import_roots=("src",))


@pytest.fixture(scope="module")
def found() -> Found:
    some = IDS[:2]
    return found_with(
        {
            "good": some,
            "small": some,
            "early": some,
            "collected": some,
            "popular": IDS[:10],
            "scattered": (IDS[0], IDS[5], IDS[10], IDS[15]),
            "helper": some,
            "_private": some,
            "Box.open": some,
            "Box.close": IDS[2:3],
        },
        early=("early", "collected"),
    )


def test_a_definition_that_meets_every_rule_is_a_candidate(found: Found):
    titles = {it.title: it for it in found.features}
    assert titles.keys() == {
        "pkg.core.good",
        "pkg.core.Box",
        "pkg.core.Box.open",
        "pkg.core.Box.close",
    }
    good = titles["pkg.core.good"]
    assert (good.tests, good.group) == (IDS[:2], "`tests/test_a.py`")
    assert [(it.path, it.qualname, it.kind) for it in good.symbols] == [(PATH, "good", "function")]
    assert titles["pkg.core.Box.open"].symbols[0].kind == "method"


def test_a_class_has_the_tests_of_all_its_methods(found: Found):
    box = next(it for it in found.features if it.title == "pkg.core.Box")
    assert (box.tests, box.symbols[0].kind) == (IDS[:3], "class")


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        ("small", "too_small", "1 lines of code"),
        ("unreached", "no_test_reaches_it", "no test of the baseline enters it"),
        ("early", "reached_at_import", "runs while modules are imported or tests collected"),
        ("popular", "reached_by_too_many_tests", "33% of the tests enter it"),
        ("scattered", "no_nameable_group", "its 4 tests stand in 4 files"),
        ("helper", "used_elsewhere", "called at src/pkg/other.py:4 in user"),
    ],
)
def test_a_definition_that_breaks_a_rule_is_left_out_with_its_reason(
    found: Found, name: str, reason: str, detail: str
):
    rejects = {it.subject: it.reject for it in found.left_out}
    reject = rejects[f"pkg.core.{name}"]
    assert (reject.stage, reject.reason, reject.detail) == ("feature", reason, detail)


def test_private_foreign_and_test_code_is_not_considered(found: Found):
    subjects = {it.subject for it in found.left_out} | {it.title for it in found.features}
    assert not [it for it in subjects if "_private" in it or "apart" in it or "tests" in it]


@pytest.mark.parametrize(("num_tests", "is_candidate"), [(9, True), (10, False)])
def test_at_most_three_tests_in_ten_may_reach_a_feature(num_tests: int, is_candidate: bool):
    # Three files' worth of ids, so that the number alone decides.
    found = found_with({"good": IDS[:num_tests]})
    assert ("pkg.core.good" in {it.title for it in found.features}) == is_candidate


@pytest.mark.parametrize(
    ("tests", "group"),
    [
        (["t/test_a.py::test_b"], "`t/test_a.py::test_b`"),
        (["t/test_a.py::test_b[x]", "t/test_a.py::test_b[y::z]"], "`t/test_a.py::test_b`"),
        (["t/test_a.py::C::test_b", "t/test_a.py::C::test_c"], "`t/test_a.py::C`"),
        (["t/test_a.py::C::test_b", "t/test_a.py::D::test_b"], "`t/test_a.py`"),
        (["t/test_a.py::C::test_b", "t/test_a.py::test_c"], "`t/test_a.py`"),
        (["t/test_a.py::test_b", "t/test_b.py::test_b"], "`t/test_a.py`, `t/test_b.py`"),
        ([f"t/test_{it}.py::test" for it in "abc"], "`t/test_a.py`, `t/test_b.py`, `t/test_c.py`"),
        ([f"t/test_{it}.py::test" for it in "abcd"], ""),
        (["README.txt::README.txt"], "`README.txt::README.txt`"),
    ],
)
def test_a_group_is_named_by_what_its_tests_share(tests: list[str], group: str):
    assert name_group(tests) == group


def feature(name: str, kind: str = "function") -> Feature:
    symbol = Symbol(path="a.py", qualname=name, kind=kind, first_line=1, last_line=9)  # type: ignore[arg-type]
    return Feature(title=f"a.{name}", symbols=(symbol,), tests=("t",), group="`t`")


FEATURES = tuple(
    feature(f"{kind}{number}", kind)
    for kind, count in (("class", 2), ("function", 12), ("method", 5))
    for number in range(count)
)


def test_the_order_depends_on_the_seed_alone():
    order = order_features(FEATURES, repo="small", seed=1)
    assert sorted(it.title for it in order) == sorted(it.title for it in FEATURES)
    assert order == order_features(FEATURES[::-1], repo="small", seed=1)
    assert order != order_features(FEATURES, repo="small", seed=2)
    assert order != order_features(FEATURES, repo="other", seed=1)


def test_the_kinds_take_turns():
    kinds = [it.symbols[0].kind for it in order_features(FEATURES, repo="small", seed=0)]
    assert kinds[:6] == ["class", "function", "method"] * 2
    assert kinds[-7:] == ["function"] * 7


def test_one_candidate_more_or_less_does_not_reorder_the_others():
    order = order_features(FEATURES, repo="small", seed=3)
    for gone in FEATURES:
        rest = [it for it in FEATURES if it != gone]
        functions = [it for it in order if it != gone and it.symbols[0].kind == "function"]
        again = order_features(rest, repo="small", seed=3)
        assert [it for it in again if it.symbols[0].kind == "function"] == functions


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
