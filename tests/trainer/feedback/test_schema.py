from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.schemas import Tool
from tests.trainer.feedback.episodes import TOOLS
from trainer.feedback.schema import breaches, signature


def rules(schema: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    made = Tool(name="t", description="", schema=schema)
    return [it.rule for it in breaches(arguments, made)]


@pytest.mark.parametrize(
    ("value", "inner", "rule"),
    [
        ("x", {"type": "integer"}, "`a` is of type integer"),
        (True, {"type": "number"}, "`a` is of type number"),
        (None, {"type": ["string", "integer"]}, "`a` is of type string or integer"),
        ("c", {"enum": ["a", "b"]}, "`a` is one of a, b"),
        (0, {"type": "integer", "minimum": 1}, "`a` is at least 1"),
        ([1, 2], {"type": "array", "maxItems": 1}, "`a` has at most 1"),
        ("", {"type": "string", "minLength": 1}, "`a` has at least 1"),
        ([1], {"items": {"type": "string"}}, "`a[0]` is of type string"),
        ({}, {"required": ["b"]}, "`a.b` is required"),
    ],
)
def test_a_rule_that_is_broken_is_named_without_the_value(
    value: Any, inner: Any, rule: str
) -> None:
    assert rules({"properties": {"a": inner}}, {"a": value}) == [rule]


@pytest.mark.parametrize(
    ("value", "inner"),
    [
        (1, {"type": "number"}),
        (None, {"type": ["string", "null"]}),
        ([{"b": 1}], {"items": {"required": ["b"]}}),
        ("x", {"pattern": "y", "format": "uri"}),
        (1, {"type": "no such type"}),
        (1, {}),
    ],
)
def test_what_keeps_the_rules_that_are_known_breaks_none(value: Any, inner: Any) -> None:
    assert rules({"properties": {"a": inner}}, {"a": value}) == []


def test_more_keys_are_fine_unless_the_schema_says_no() -> None:
    assert rules({"properties": {"a": {}}}, {"b": 1}) == []
    closed = {"properties": {"a": {}}, "additionalProperties": False}
    assert rules(closed, {"b": 1}) == ["the keys are `a` and no others"]


def test_a_signature_tells_what_may_be_left_out() -> None:
    by_name = {it.name: it for it in TOOLS}
    assert signature(by_name["search"]) == "search(text: string, path?: string)"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
WORDS = st.sampled_from(["properties", "required", "type", "enum", "items", "minimum", "maxItems"])


@given(
    schema=st.dictionaries(WORDS, JSON | st.dictionaries(st.text(), st.dictionaries(WORDS, JSON))),
    arguments=st.dictionaries(st.text(), JSON),
)
def test_no_schema_however_odd_stops_the_check(schema: Any, arguments: Any) -> None:
    assert all(isinstance(rule, str) for rule in rules(schema, arguments))
    signature(Tool(name="t", description="", schema=schema))
