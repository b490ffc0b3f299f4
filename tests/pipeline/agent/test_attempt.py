"""What an attempt at a Task starts from, what it leaves, and what it is worth."""

import pytest

from pipeline.agent.attempt import Litter, solver_bench, try_task
from pipeline.agent.loop import Done, ScriptedPolicy
from pipeline.agent.tools import Call
from pipeline.task.attempt import Attempt
from pipeline.task.attempted import Agent, attempt_of
from pipeline.task.grade import Desk, grade
from pipeline.task.record import Task
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import read_tree
from tests.pipeline.conftest import TaskOf

BACK = '''\

def convert(amount, source, target="g"):
    """Say in another unit how much it is."""
    return amount * _factor(source) / _factor(target)
'''


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


def policy_of(*commands: str) -> ScriptedPolicy:
    def script():
        for command in commands:
            yield Call(thought="", tool="run_command", arguments={"command": command})
        return Done(reason="", detail="")

    return ScriptedPolicy(script())


def test_a_solver_starts_from_the_solve_tree_without_the_bytecode_of_what_changed(
    task: Task, pantry_desk: Desk
):
    compiled = {it.name for it in (pantry_desk.bench.bytecode / "tree").rglob("units.*.pyc")}
    assert compiled
    with solver_bench(task, desk=pantry_desk) as workbench:
        assert read_tree(workbench.tree) == solve_tree(task, read_tree(pantry_desk.tree))
        call = Call(
            thought="",
            tool="run_command",
            arguments={"command": "find /pyc/work -name '*.pyc' | sort"},
        )
        found = workbench.use(call).output
    assert "shelf." in found
    assert "units." not in found


def graded(task: Task, policy: ScriptedPolicy, desk: Desk, *, number: int = 0) -> Attempt:
    tried = try_task(task, policy, desk=desk)
    result = grade(task, tried.patch, desk=desk)
    return attempt_of(result, tried.turns, agent=Agent(name=policy.name), number=number)


def test_an_attempt_that_solves_says_what_was_done_and_changed(task: Task, pantry_desk: Desk):
    gold = task.deletion.gold_patch
    policy = policy_of("cat pantry/units.py", f"git apply - <<'EOF'\n{gold}EOF")
    attempt = graded(task, policy, pantry_desk, number=3)
    assert (attempt.verdict, attempt.detail) == ("solved", "")
    assert (attempt.id, attempt.task_id) == (f"{task.id}.scripted.3", task.id)
    assert attempt.patch == gold
    assert [turn.tool for turn in attempt.turns] == ["run_command", "run_command"]
    assert "def parse_amount" in attempt.turns[0].output
    assert attempt.turns[1].output == "exit status 0"


def test_an_attempt_that_does_nothing_is_unsolved(task: Task, pantry_desk: Desk):
    attempt = graded(task, policy_of("ls"), pantry_desk)
    assert (attempt.verdict, attempt.patch) == ("unsolved", "")
    assert {it.id for it in attempt.broken} >= {it.id for it in task.evidence.fail_to_pass}


def test_litter_is_found_and_is_no_part_of_the_patch(task: Task, pantry_desk: Desk):
    litter = Litter(
        tree={"build/lib/old.py": b"OLD = 1\n", "dist/old.py": b"OLD = 1\n"},
        folders={"/srv/old": {"a/b.py": b"OLDER = 2\n"}},
    )
    policy = policy_of(
        "cat build/lib/old.py /srv/old/a/b.py", "rm dist/*; echo x > new.txt; rm README.md"
    )
    tried = try_task(task, policy, desk=pantry_desk, litter=litter)
    assert tried.turns[0].output.startswith("OLD = 1\nOLDER = 2\n")
    assert "old.py" not in tried.patch
    assert {"+++ b/new.txt", "--- a/README.md"} <= set(tried.patch.splitlines())
    assert not (pantry_desk.tree / "build").exists()
    assert (pantry_desk.tree / "README.md").exists()
