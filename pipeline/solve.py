"""Have an agent try the Tasks of a run: each try in a sandbox, graded, and kept when it is done."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

from pipeline.agent.attempt import try_task
from pipeline.agent.chat.policy import ChatPolicy, Model
from pipeline.agent.chat.prompt import how_to_work
from pipeline.agent.loop import Policy, ScriptedPolicy
from pipeline.agent.schemas import SOLVING, describe_tools
from pipeline.agent.scripts import do_nothing, write, write_most
from pipeline.done import DoneStore, part_of
from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.steps import in_window
from pipeline.task.attempt import Attempt
from pipeline.task.attempted import Agent, attempt_of
from pipeline.task.canonical import content_id
from pipeline.task.grade import Desk, grade
from pipeline.task.patch import apply_patch
from pipeline.task.record import SCHEMA_VERSION, Instruction, Task
from pipeline.task.schema import from_row, to_row
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import read_tree

AgentName = Literal["chat", "scripted", "gold", "empty"]
# A machine that fails a try may do better the next time.
MAX_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """Who tries, and how.

    Example: `Solver(agent="scripted", skill=0.3)`.
    """

    agent: AgentName
    # Of `chat`.
    model: Model | None = None
    # Of `scripted`: how likely it writes all that is missing, and not all but a part.
    skill: float = 0.5
    # Wordings that are drawn from; empty for all that a Task has.
    style: str = ""
    seed: int = 0
    max_turns: int = 50

    @property
    def who(self) -> Agent:
        """Its name and its model's."""
        if self.model is not None:
            return Agent(name=self.agent, model=self.model.server.model)
        return Agent(name=self.agent)

    def key(self, task: Task, number: int) -> str:
        """Return the key of the done-record of a try: all that decides it."""
        how: list[object] = [self.who, self.style, self.seed, self.max_turns]
        if self.agent == "scripted":
            how.append(self.skill)
        if self.model is not None:
            how += [self.model.temperature, self.model.max_new_tokens]
        return content_id("solve", SCHEMA_VERSION, task.id, number, *how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A try that the machine failed: no verdict."""

    task_id: str
    number: int
    # One line.
    why: str


Tries = Iterable[tuple[Task, int]]


def solve(
    tries: Tries,
    *,
    solver: Solver,
    open_desk: Callable[[Task], Desk],
    done: DoneStore,
    jobs: int,
) -> Iterator[Attempt | Lost]:
    """Make the tries that are not done yet, several at once; yield all as they come.

    Raises:
        ServerError: the model's server failed.
        BudgetError: no more may be spent.
        SandboxStoppedError: it was stopped.
    """
    work = partial(_settle, solver=solver, open_desk=open_desk, done=done)
    return in_window(work, tries, width=jobs)


def _settle(
    it: tuple[Task, int], *, solver: Solver, open_desk: Callable[[Task], Desk], done: DoneStore
) -> Attempt | Lost:
    """Look a try up, else make it and keep its record."""
    task, number = it
    key = solver.key(task, number)
    if (record := done.get(key)) is not None:
        return from_row(Attempt, part_of(record, "attempt"))
    why = ""
    for _ in range(MAX_TRIES):
        try:
            attempt = make_attempt(task, number, solver=solver, desk=open_desk(task))
        except (SandboxBrokenError, OSError) as error:
            why = f"{type(error).__name__}: {' '.join(str(error).split())}"
            continue
        done.put(key, {"attempt": to_row(attempt)})
        return attempt
    return Lost(task_id=task.id, number=number, why=why)


def make_attempt(task: Task, number: int, *, solver: Solver, desk: Desk) -> Attempt:
    """Make one try.

    Raises:
        ServerError, BudgetError: the model said no more.
        SandboxStoppedError, SandboxBrokenError, OSError: the machine failed.
    """
    policy = open_policy(task, number, solver=solver, desk=desk)
    tried = try_task(task, policy, desk=desk, max_turns=solver.max_turns)
    drawn = content_id(task.id, number, tried.patch)
    result = grade(task, tried.patch, desk=desk, drawing=Random(drawn))  # noqa: S311  no secret
    if result.verdict == "invalid":
        raise SandboxBrokenError(result.detail)
    tokens = policy.usage.num_tokens if isinstance(policy, ChatPolicy) else 0
    return attempt_of(result, tried.turns, agent=solver.who, number=number, num_tokens=tokens)


def open_policy(task: Task, number: int, *, solver: Solver, desk: Desk) -> Policy:
    """Return who decides in one try."""
    if solver.agent == "empty":
        return ScriptedPolicy(do_nothing())
    if solver.agent == "chat":
        assert solver.model is not None, "an agent that chats with nobody"
        request = draw_instruction(task, number, solver=solver)
        tools = describe_tools(SOLVING)
        return ChatPolicy(
            solver.model, system=how_to_work(SOLVING), request=request.text, tools=tools
        )
    files = solve_tree(task, read_tree(desk.tree))
    changes = apply_patch(files, task.deletion.gold_patch)
    draw = Random(content_id("scripted", solver.seed, task.id, number))  # noqa: S311  no secret
    if solver.agent == "scripted" and draw.random() >= solver.skill:
        return ScriptedPolicy(write_most(changes, before=files, draw=draw))
    return ScriptedPolicy(write(changes, before=files))


def draw_instruction(task: Task, number: int, *, solver: Solver) -> Instruction:
    """Return the wording that a try is given: each in turn, from one that is drawn."""
    found = [it for it in task.instructions if solver.style in {"", it.style}]
    assert found, f"{task.id}: no wording {solver.style!r}"
    first = int(content_id("instruction", solver.seed, task.id), 16)
    return found[(first + number) % len(found)]
