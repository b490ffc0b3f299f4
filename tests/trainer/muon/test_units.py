import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.muon.cuts import AdamW, Experts, Rows, Whole
from trainer.muon.units import Box, Rule, membership_table, sort_parameters, units_of

SHAPES = {
    "layers.0.q.weight": (8, 4),
    "layers.1.q.weight": (8, 4),
    "layers.0.experts": (3, 4, 6),
    "norm.weight": (4,),
}
RULES = (
    Rule(pattern=r"layers\.\d+\.q\.weight", cut=Rows(size=4)),
    Rule(pattern=r"layers\.\d+\.experts", cut=Experts(cut=Whole())),
    Rule(pattern=r"norm\.weight", cut=AdamW(reason="norm")),
)

intervals = st.tuples(st.integers(0, 6), st.integers(1, 4)).map(lambda it: (it[0], sum(it)))
boxes = st.builds(Box, experts=intervals, rows=intervals, cols=intervals)


def elements(box: Box | None) -> set[tuple[int, int, int]]:
    if box is None:
        return set()
    return {
        (e, r, c) for e in range(*box.experts) for r in range(*box.rows) for c in range(*box.cols)
    }


@given(boxes, boxes)
def test_the_intersection_of_boxes_has_what_is_in_both(one: Box, other: Box) -> None:
    both = one.intersect(other)
    assert elements(both) == elements(one) & elements(other)
    assert both == other.intersect(one)
    assert (both.numel if both else 0) == len(elements(both))


def test_each_parameter_goes_where_its_first_rule_says() -> None:
    membership = sort_parameters(SHAPES, (*RULES, Rule(pattern=".*", cut=AdamW(reason="rest"))))
    assert membership.adamw == {"norm.weight": "norm"}
    assert {name: len(units) for name, units in membership.muon.items()} == {
        "layers.0.q.weight": 2,
        "layers.1.q.weight": 2,
        "layers.0.experts": 3,
    }
    assert len(membership.units) == 7


def test_a_parameter_that_no_rule_matches_is_named_with_a_rule_that_would() -> None:
    with pytest.raises(ValueError, match=r"^odd\.weight: no rule says how Muon cuts it") as refused:
        sort_parameters({"odd.weight": (2, 2)}, RULES)
    assert r"Rule(pattern='odd\\.weight', cut=Whole())" in str(refused.value)


def test_a_pattern_must_match_the_whole_name() -> None:
    with pytest.raises(ValueError, match="no rule"):
        sort_parameters({"norm.weight.more": (4,)}, RULES)


def test_the_table_folds_numbers_and_counts_units_and_weights() -> None:
    assert membership_table(SHAPES, RULES) == [
        ("layers.*.q.weight", "any number of 4 rows", "4 x 4", 4, 64),
        ("layers.*.experts", "each expert: whole", "4 x 6", 3, 72),
        ("norm.weight", "AdamW: norm", "", 0, 4),
    ]


def test_units_sort_by_parameter_and_place() -> None:
    units = [*units_of("b", (4, 4), Rows(size=2)), *units_of("a", (2, 4, 4), Experts(cut=Whole()))]
    assert [(it.parameter, it.box.experts[0], it.box.rows[0]) for it in sorted(units)] == [
        ("a", 0, 0),
        ("a", 1, 0),
        ("b", 0, 0),
        ("b", 0, 2),
    ]
