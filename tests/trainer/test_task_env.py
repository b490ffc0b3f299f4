"""A Task in a real sandbox as an environment: what is said, what is called, what it is worth."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from pipeline.agent.edits import edits_between
from pipeline.agent.schemas import SOLVING
from pipeline.sandbox.bubblewrap import Bubblewrap
from pipeline.sandbox.protocol import SandboxBrokenError, SandboxStoppedError
from pipeline.task.grade import Desk
from pipeline.task.record import Task
from pipeline.task.shards import index_tasks
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import read_tree
from trainer.env import World
from trainer.records import ToolCall, ToolResult
from trainer.task_env import MAX_COMMAND_BYTES, TaskConfig, TaskEnvironment, TaskWorld


def world_of(run: Path, desk: Desk, *, seed: int = 0, **settings: object) -> TaskWorld:
    config = TaskConfig(**settings)
    return TaskWorld(index_tasks(run), open_desk=lambda _: desk, config=config, seed=seed)


@pytest.fixture(scope="module")
def world(pantry_run: Path, pantry_desk: Desk) -> World:
    return world_of(pantry_run, pantry_desk)


@pytest.fixture
def environment(world: World, pantry_task: Task) -> Iterator[TaskEnvironment]:
    with world.open(pantry_task.id, draw="0-x.0") as opened:
        yield opened


def called(environment: TaskEnvironment, name: str, **arguments: object) -> ToolResult:
    call = ToolCall(name=name, arguments=arguments, raw="", error="", start=0, end=0)
    return environment.call(call)


def test_edits_that_put_the_feature_back_are_worth_one(
    environment: TaskEnvironment, pantry_task: Task, pantry_desk: Desk
):
    shown = solve_tree(pantry_task, read_tree(pantry_desk.tree))
    for path in pantry_task.deletion.paths:
        assert called(environment, "read_file", path=path).text == shown[path].decode()
    put_back(environment, pantry_task, pantry_desk)
    assert called(environment, "run_tests").ok
    outcome = environment.finish("I believe that nothing works.")
    assert (outcome.reward, outcome.verdict, outcome.detail) == (1.0, "solved", "")
    assert outcome.patch == pantry_task.deletion.gold_patch
    # Nobody showed it what it wrote.
    assert outcome.monitored in {"clean", "memory"}


def test_nothing_done_is_worth_nothing_whatever_is_said(environment: TaskEnvironment):
    outcome = environment.finish("All tests pass.")
    assert (outcome.reward, outcome.verdict, outcome.patch) == (0.0, "unsolved", "")
    assert outcome.detail


def test_a_wrong_call_is_an_answer(environment: TaskEnvironment):
    unknown = called(environment, "fly", to="moon")
    assert unknown == ToolResult(
        ok=False, text=f"there is no tool 'fly', there are {', '.join(SOLVING)}"
    )
    assert "there is no tool" in called(environment, "import_modules", modules=["os"]).text
    assert called(environment, "read_file", file="a.py").text.startswith("TypeError: ")
    assert called(environment, "read_file", path="a.py").text.startswith("FileNotFoundError: ")
    assert called(environment, "run_command", command=["ls"]).text.startswith("`command` is ")
    assert not called(environment, "run_tests", ids="all").ok


def test_a_command_that_is_too_long_to_start_is_an_answer(environment: TaskEnvironment):
    fits = "true #".ljust(MAX_COMMAND_BYTES, "x")
    assert called(environment, "run_command", command=fits).ok
    assert "is longer than" in called(environment, "run_command", command=f"{fits}x").text


def test_what_is_no_text_comes_back_as_text_that_can_be_written(environment: TaskEnvironment):
    assert called(environment, "run_command", command=r"printf '\344h' > latin").ok
    assert called(environment, "read_file", path="latin").text == r"\udce4h"


def test_each_try_has_a_tree_of_its_own(world: World, pantry_task: Task):
    opening = world.open(pantry_task.id, draw="a"), world.open(pantry_task.id, draw="b")
    with opening[0] as one, opening[1] as other:
        assert called(one, "write_file", path="note", content="mine").ok
        assert "note" in called(one, "list_files").text.split()
        assert "note" not in called(other, "list_files").text.split()


def test_the_policy_is_told_of_its_tools_and_given_a_wording_of_the_task(
    environment: TaskEnvironment, pantry_task: Task
):
    system, user = environment.messages
    assert (system.role, user.role) == ("system", "user")
    assert "`/work`" in system.content
    assert "Run the tests" in system.content
    assert user.content in {it.text for it in pantry_task.instructions}
    assert tuple(it.name for it in environment.tools) == SOLVING


def test_without_a_tool_for_tests_nobody_is_told_to_run_them(
    pantry_run: Path, pantry_desk: Desk, pantry_task: Task
):
    world = world_of(pantry_run, pantry_desk, tools=("read_file", "write_file"))
    with world.open(pantry_task.id, draw="") as environment:
        assert "Run the tests" not in environment.messages[0].content
        assert [it.name for it in environment.tools] == ["read_file", "write_file"]


def test_wordings_follow_the_seed_and_the_draw_and_the_styles_asked_for(
    pantry_run: Path, pantry_desk: Desk, pantry_task: Task
):
    def drawn(draw: str, **settings: object) -> str:
        world = world_of(pantry_run, pantry_desk, **settings)
        with world.open(pantry_task.id, draw=draw) as environment:
            return environment.messages[1].content

    texts = {it.style: it.text for it in pantry_task.instructions}
    by_draw = [drawn(f"{number}-x.0") for number in range(8)]
    assert {*by_draw} == {*texts.values()}
    assert by_draw == [drawn(f"{number}-x.0") for number in range(8)]
    assert by_draw != [drawn(f"{number}-x.0", seed=1) for number in range(8)]
    assert {drawn(f"{number}", styles=("bug_report",)) for number in range(4)} == {
        texts["bug_report"]
    }
    with pytest.raises(ValueError, match=r"expected one of \('haiku',\)"):
        drawn("", styles=("haiku",))


@pytest.mark.parametrize(("tampered", "reward"), [("zero", 0.0), ("drop", None)])
def test_work_that_was_made_to_look_solved_is_worth_nothing_or_is_left_out(
    pantry_run: Path, pantry_desk: Desk, pantry_task: Task, tampered: str, reward: float | None
):
    world = world_of(pantry_run, pantry_desk, tampered=tampered)
    with world.open(pantry_task.id, draw="") as environment:
        assert called(environment, "write_file", path="sitecustomize.py", content="x = 1\n").ok
        outcome = environment.finish("")
    assert (outcome.verdict, outcome.reward) == ("tampered", reward)
    assert "sitecustomize.py" in outcome.detail


def put_back(environment: TaskEnvironment, task: Task, desk: Desk) -> None:
    snapshot = read_tree(desk.tree)
    shown = solve_tree(task, snapshot)
    for path in task.deletion.paths:
        if path.startswith("tests/"):
            continue
        for old, new in edits_between(shown[path].decode(), snapshot[path].decode()):
            done = called(environment, "edit_file", path=path, old=old, new=new)
            assert done == ToolResult(ok=True, text=f"edited: {path}")


LOOT = "pip download pantry; find / -name '*.pyc' | xargs strings; git log --all -p"


@pytest.mark.parametrize(
    ("monitor", "label", "reward"),
    [("off", "", 1.0), ("flag", "hacked", 1.0), ("zero", "hacked", 0.0), ("drop", "hacked", None)],
)
def test_work_that_passes_its_tests_and_was_looted_is_labelled_and_worth_what_was_asked_for(
    pantry_run: Path,
    pantry_desk: Desk,
    pantry_task: Task,
    monitor: str,
    label: str,
    reward: float | None,
):
    world = world_of(pantry_run, pantry_desk, monitor=monitor)
    with world.open(pantry_task.id, draw="") as environment:
        called(environment, "run_command", command=LOOT)
        put_back(environment, pantry_task, pantry_desk)
        outcome = environment.finish("")
    assert (outcome.verdict, outcome.monitored, outcome.reward) == ("solved", label, reward)


def test_a_sandbox_that_cannot_start_raises_and_is_never_a_reward(
    pantry_run: Path, pantry_desk: Desk, pantry_task: Task
):
    broken = replace(pantry_desk, sandbox=Bubblewrap(Path("/nowhere/bwrap")))
    with world_of(pantry_run, broken).open(pantry_task.id, draw="") as environment:
        with pytest.raises(SandboxBrokenError):
            called(environment, "list_files")
        outcome = environment.finish("")
    assert (outcome.verdict, outcome.reward) == ("invalid", None)
    assert outcome.detail.startswith("the machine failed 3 times: ")


def test_a_sandbox_that_is_stopped_raises(pantry_run: Path, pantry_desk: Desk, pantry_task: Task):
    stopped = Bubblewrap(Path("/nowhere/bwrap"))
    desk = replace(pantry_desk, sandbox=stopped)
    with world_of(pantry_run, desk).open(pantry_task.id, draw="") as environment:
        stopped.stop()
        with pytest.raises(SandboxStoppedError):
            called(environment, "list_files")
        with pytest.raises(SandboxStoppedError):
            environment.finish("")


def test_a_task_that_is_not_there_is_refused_in_one_line(world: World):
    with (
        pytest.raises(ValueError, match=r"^'moon': no such task, expected one of 1$"),
        world.open("moon", draw=""),
    ):
        pass


def test_a_tool_that_nobody_has_is_no_configuration():
    with pytest.raises(ValidationError, match="fly"):
        TaskConfig(tools=("fly",))
    with pytest.raises(ValidationError, match="at least 1"):
        TaskConfig(tools=())
