"""What a policy writes is read as calls, and nothing that it writes is an exception."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.written import CallFormat, read_calls

MARKS = [
    *("<tool_call>", "</tool_call>", '{"name": "f", "arguments": ', "{}", "[", "]", "}", '"', "\\"),
    *("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "functions.f:0"),
    *("\\ud800", "NaN", "1e999", "\0", "é", "🙂"),
]


def test_calls_are_read_in_order_with_the_characters_that_they_stand_in():
    text = 'So: <tool_call>{"name": "a"}</tool_call> <tool_call>{"name": "b"}</tool_call>!'
    calls = list(read_calls(text, form="hermes"))
    assert [(it.name, it.arguments, it.error) for it in calls] == [("a", {}, ""), ("b", {}, "")]
    assert text[calls[1].first : calls[1].last] == '<tool_call>{"name": "b"}</tool_call>'


def test_arguments_that_are_written_as_a_text_are_read_from_it():
    text = '<tool_call>{"name": "f", "arguments": "{\\"x\\": 1}"}</tool_call>'
    (call,) = read_calls(text, form="hermes")
    assert (call.arguments, call.error) == ({"x": 1}, "")


def test_a_call_of_kimis_has_its_name_in_the_id():
    text = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0"
        '<|tool_call_argument_begin|>{"text": "a"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    (call,) = read_calls(text, form="kimi")
    assert (call.name, call.arguments, call.error) == ("search", {"text": "a"}, "")


@pytest.mark.parametrize(
    ("body", "name", "error"),
    [
        ("", "", "no JSON"),
        ("{'name': 'f'}", "", "no JSON"),
        ("[1]", "", "expected a JSON object"),
        ('{"arguments": {}}', "", "expected a JSON object"),
        ('{"name": 7}', "", "the name is no text"),
        ('{"name": "f", "arguments": [1]}', "f", "expected a JSON object, not list"),
        ('{"name": "f", "arguments": "{"}', "f", "arguments: no JSON"),
        ('{"name": "f", "arguments": {"x": NaN}}', "", "no JSON"),
        ('{"name": "f", "arguments": {"x": 1e999}}', "", "no JSON"),
        ('{"name": "f", "arguments": {"x": "\\ud800"}}', "", "no JSON"),
        ('{"name": "f", "arguments": ' + "[" * 100_000, "", "no JSON"),
    ],
)
def test_a_malformed_call_says_what_is_wrong(body: str, name: str, error: str):
    (call,) = read_calls(f"<tool_call>{body}</tool_call>", form="hermes")
    assert (call.name, call.arguments, call.raw) == (name, None, body)
    assert error in call.error


def test_a_call_without_its_end_is_malformed_however_whole_it_looks():
    text = '<tool_call>{"name": "a"}<tool_call>{"name": "b"}'
    assert [it.error for it in read_calls(text, form="hermes")] == ["the call has no end"] * 2


@given(
    st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=5)), max_size=20).map("".join),
    st.sampled_from(["hermes", "kimi"]),
)
def test_whatever_is_written_is_read_as_calls_that_are_whole_or_say_why_not(
    text: str, form: CallFormat
):
    end = 0
    for call in read_calls(text, form=form):
        assert end <= call.first < call.last <= len(text)
        end = call.last
        assert bool(call.error) == (call.arguments is None)
        assert call.error or call.name
        json.dumps(call.arguments, allow_nan=False, ensure_ascii=False).encode()
