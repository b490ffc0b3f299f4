from tests.trainer.feedback.checks import found, is_mended, kinds
from tests.trainer.feedback.episodes import TOOLS, call, episode, says, tool

PLANNED = (*TOOLS, tool("todo_write", todos="array"))
DONE = says("I added both functions.")


def plan(*statuses: str):
    items = [{"content": f"step {n}", "status": it} for n, it in enumerate(statuses)]
    return says("", call("todo_write", "noted", todos=items))


def test_items_left_open_at_the_end_are_found() -> None:
    one = episode(plan("pending", "pending"), plan("completed", "in_progress"), DONE, tools=PLANNED)
    finding = found(one, "unfinished_plan")
    assert finding.facts == {"planner": "todo_write", "num_open": 1}
    assert finding.evidence == "open: step 1"
    finished = [{"content": "step 1", "status": "completed"}]
    assert is_mended(one, "unfinished_plan", says("", call("todo_write", todos=finished)))
    assert is_mended(one, "unfinished_plan", says("Step 1 is left open."))
    assert not is_mended(one, "unfinished_plan", DONE)


def test_a_plan_that_is_done_dropped_or_owned_up_to_is_finished() -> None:
    for said in (
        [plan("pending"), plan("completed"), DONE],
        [plan("pending"), plan(), DONE],
        [plan("pending"), says("The step is not done.")],
        [plan("pending")],
    ):
        assert kinds(episode(*said, tools=PLANNED)) == []


def test_what_is_no_plan_is_not_read_as_one() -> None:
    odd = says("", call("todo_write", "noted", todos=["a", {"status": 3}], status="pending"))
    other = says("", call("planet", "found", planets=[{"name": "Mars", "status": "open"}]))
    tools = (*PLANNED, tool("planet", planets="array"))
    assert kinds(episode(odd, other, DONE, tools=tools)) == []
