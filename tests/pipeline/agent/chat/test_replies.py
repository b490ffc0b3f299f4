"""Whatever a model answers is read as calls and words, and says what is wrong with it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.chat.replies import Reply, read_reply

TOOLS = ("read_file", "search")


def read(message: Any, **more: Any) -> Reply:
    answer = {"choices": [{"message": message}], **more}
    return read_reply(answer, tools=TOOLS, num_prompt_chars=400)


def native(arguments: Any, *, name: Any = "read_file") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": "a", "function": function}]}


def test_calls_in_the_servers_form_are_read_with_their_ids() -> None:
    reply = read(native('{"path": "a.py"}'))
    (call,) = reply.calls
    assert (call.id, call.tool, call.arguments, call.error) == (
        "a",
        "read_file",
        {"path": "a.py"},
        "",
    )
    assert reply.text == ""


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ('{"path": "a.', "arguments are no JSON"),
        ('["a.py"]', "arguments: expected a JSON object, not list"),
        ('{"path": "\\ud800"}', "arguments are no JSON"),
        ('{"a": NaN}', "arguments are no JSON"),
        ("[" * 10_000, "arguments are no JSON"),
        (7, "arguments: expected a JSON object, not int"),
    ],
    ids=lambda it: str(it)[:20],
)
def test_a_call_that_cannot_be_carried_out_says_why(arguments: Any, why: str) -> None:
    (call,) = read(native(arguments)).calls
    assert call.arguments is None
    assert call.error.startswith(why)


def test_a_call_without_a_name_says_so() -> None:
    (call,) = read(native("{}", name=None)).calls
    assert (call.tool, call.error) == ("", "it has no name")


@pytest.mark.parametrize(
    "text",
    [
        'I look.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>',
        'I look.\n```json\n{"name": "read_file", "arguments": {"path": "a.py"}}\n```',
        'I look.\n```\n{"name": "read_file", "arguments": "{\\"path\\": \\"a.py\\"}"}\n```\n',
    ],
)
def test_calls_in_the_text_are_read_and_taken_out_of_it(text: str) -> None:
    reply = read({"content": text})
    (call,) = reply.calls
    assert (call.id, call.tool, call.arguments) == ("", "read_file", {"path": "a.py"})
    assert reply.text == "I look."


def test_json_that_names_no_tool_is_no_call() -> None:
    text = 'The file says:\n```json\n{"name": "toolz", "arguments": {}}\n```'
    reply = read({"content": text})
    assert reply.calls == ()
    assert reply.text == text


def test_tokens_are_those_that_the_server_counts_or_guessed() -> None:
    counted = read({"content": "hi"}, usage={"prompt_tokens": 7, "completion_tokens": 2}).usage
    assert (counted.num_prompt_tokens, counted.num_completion_tokens) == (7, 2)
    nonsense = {"prompt_tokens": -1_000_000, "completion_tokens": 2}
    assert read({"content": "hi"}, usage=nonsense).usage.num_prompt_tokens == 100
    guessed = read({"content": "x" * 400}).usage
    assert guessed.num_prompt_tokens == 100
    assert 100 <= guessed.num_completion_tokens <= 110


@pytest.mark.parametrize("answer", [{}, {"choices": []}, {"choices": [{}]}, {"error": "no"}])
def test_an_answer_without_a_message_is_none(answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="without a message"):
        read_reply(answer, tools=TOOLS, num_prompt_chars=0)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_no_message_is_a_crash(content: object, wanted: object) -> None:
    reply = read({"content": content, "tool_calls": wanted})
    assert all(it.arguments is not None or it.error for it in reply.calls)
