"""A conversation becomes calls, and outputs become its next messages."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.agent.chat import server as http
from pipeline.agent.chat.budget import Budget, BudgetError, Usage
from pipeline.agent.chat.policy import LEFT_OUT, UNREADABLE, ChatPolicy, Model
from pipeline.agent.chat.server import RefusedError, Server
from pipeline.agent.loop import Done
from pipeline.agent.schemas import describe_tools
from pipeline.agent.tools import Answer, Call
from tests.pipeline.model_server import Played, calls, model_server, refuses, says

TOOLS = describe_tools(("read_file", "search"))


@pytest.fixture
def played() -> Iterator[Played]:
    with model_server() as found:
        yield found


def policy_of(played: Played, **more: object) -> ChatPolicy:
    server = Server(url=played.url, model="coder-1", pause_s=0.01, max_tries=2)
    model = Model(server=server, **more)
    return ChatPolicy(model, system="Work.", request="Do it.", tools=TOOLS)


def ok(text: str = "fine") -> Answer:
    return Answer(ok=True, output=text)


def test_calls_of_one_message_are_made_in_turn_and_answered_together(played: Played) -> None:
    played.script = [
        calls(("read_file", {"path": "a.py"}), ("search", {"text": "b"}), text="Two things."),
        says("It is done."),
    ]
    policy = policy_of(played)
    first = policy.act(None)
    assert isinstance(first, Call)
    assert (first.thought, first.tool, first.arguments) == (
        "Two things.",
        "read_file",
        {"path": "a.py"},
    )
    second = policy.act(ok("one"))
    assert isinstance(second, Call)
    assert second.tool == "search"
    assert policy.act(ok("two")) == Done(reason="", detail="It is done.")
    told = played.asked[1]["messages"]
    assert [it["role"] for it in told] == ["system", "user", "assistant", "tool", "tool"]
    assert [it["tool_call_id"] for it in told[3:]] == ["id-0", "id-1"]
    assert [it["content"] for it in told[3:]] == ["one", "two"]
    assert [it["function"]["name"] for it in played.asked[0]["tools"]] == ["read_file", "search"]
    assert policy.usage.num_tokens == 240


def test_a_call_that_cannot_be_read_is_a_turn_and_the_model_is_told_why(played: Played) -> None:
    played.script = [calls(("read_file", '{"path": "a.')), says("I give up.")]
    policy = policy_of(played)
    made = policy.act(None)
    assert isinstance(made, Call)
    assert made.tool == UNREADABLE
    policy.act(Answer(ok=False, output="there is no tool"))
    told = played.asked[1]["messages"][-1]["content"]
    assert told.startswith("the call of read_file cannot be read: arguments are no JSON")


def test_a_server_without_tools_is_talked_to_in_plain_text_from_then_on(played: Played) -> None:
    call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
    played.script = [refuses(400, "tools are not supported"), says(call), says("Done.")]
    policy = policy_of(played)
    made = policy.act(None)
    assert isinstance(made, Call)
    assert made.tool == "read_file"
    assert policy.act(ok("text of a")) == Done(reason="", detail="Done.")
    assert ["tools" in it for it in played.asked] == [True, False, False]
    system, *_, last = played.asked[2]["messages"]
    assert '"name":"search"' in system["content"]
    assert last == {"role": "user", "content": "<tool_response>\ntext of a\n</tool_response>"}


def test_a_conversation_that_grows_too_long_loses_its_oldest_outputs(played: Played) -> None:
    played.script = [
        *[calls(("read_file", {"path": f"{number}.py"})) for number in range(3)],
        refuses(400, "maximum context length exceeded"),
        says("Done."),
    ]
    policy = policy_of(played)
    step = policy.act(None)
    for number in range(3):
        assert isinstance(step, Call)
        step = policy.act(ok(f"{number}" * 2000))
    assert step == Done(reason="", detail="Done.")
    outputs = [it["content"] for it in played.asked[-1]["messages"] if it["role"] == "tool"]
    assert outputs[0] == LEFT_OUT
    assert outputs[-1] == "2" * 2000


def test_a_context_that_nothing_shortens_ends_the_work(played: Played) -> None:
    played.script = [refuses(400, "context length")] * 2
    last = policy_of(played).act(None)
    assert isinstance(last, Done)
    assert last.reason == "overlong"


def test_a_refusal_of_another_kind_is_the_servers(played: Played) -> None:
    played.script = [refuses(404, "no such model")]
    with pytest.raises(RefusedError, match="status 404: no such model"):
        policy_of(played).act(None)


def test_a_model_that_says_nothing_is_asked_again_and_then_left(played: Played) -> None:
    played.script = [says(""), says(""), says("")]
    assert policy_of(played).act(None) == Done(reason="", detail="")
    assert played.asked[1]["messages"][-1]["content"].startswith("Call a tool, or say")


def test_no_request_is_made_that_may_cost_more_than_allowed(played: Played) -> None:
    played.script = [calls(("read_file", {"path": "a.py"})), says("Done.")]
    budget = Budget(max_usd=0.002, usd_in=1.0, usd_out=10.0)
    policy = policy_of(played, budget=budget, max_new_tokens=20)
    policy.act(None)
    assert budget.usd == pytest.approx(0.0003)
    with pytest.raises(BudgetError, match=r"\(0\.0003 US dollars\) are spent, .*, of 0\.002"):
        policy.act(ok("x" * 8000))
    assert len(played.asked) == 1
    with pytest.raises(BudgetError, match=r"^0 tokens .* it may be 4,\d\d\d, of 4,000"):
        policy_of(played, budget=Budget(max_tokens=4000)).act(None)
    assert budget.held == Usage()


def test_requests_of_several_threads_together_keep_to_what_is_allowed() -> None:
    budget, most = Budget(max_tokens=1000), Usage(num_prompt_tokens=100, num_completion_tokens=200)

    def work(_: int) -> None:
        try:
            with budget.holding(most) as book:
                time.sleep(0.02)
                book(most)
        except BudgetError:
            pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert budget.spent.num_tokens == 900


def test_what_a_request_might_have_cost_is_free_again_when_it_fails() -> None:
    budget = Budget(max_tokens=400)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), budget.holding(Usage(num_prompt_tokens=300)):
            raise ZeroDivisionError
    assert (budget.spent, budget.held) == (Usage(), Usage())


def test_a_model_whose_answer_has_no_end_is_done(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 2**16)
    played.script = [says("x" * 200_000)] * 2
    last = policy_of(played).act(None)
    assert isinstance(last, Done)
    assert last.reason == "oversized"


def test_bytes_that_are_no_text_reach_the_model_as_escapes(played: Played) -> None:
    played.script = [calls(("read_file", {"path": "a"})), says("Done.")]
    policy = policy_of(played)
    policy.act(None)
    policy.act(ok("na\udcefve"))
    assert played.asked[1]["messages"][-1]["content"] == "na\\udcefve"
