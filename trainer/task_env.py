"""Let a policy work at a Task: its request, the workbench's tools, the grade as reward."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pipeline.agent.attempt import solver_bench
from pipeline.agent.tools import Call, Workbench
from pipeline.task.canonical import content_id
from pipeline.task.grade import Desk, grade
from pipeline.task.receipt import Verdict
from pipeline.task.record import Instruction, Task
from pipeline.task.shards import index_tasks, read_task
from pipeline.task.work_tree import patch_between, read_work_tree
from trainer.env import Message, Outcome
from trainer.records import ToolCall, ToolResult
from trainer.settings import Settings
from trainer.task_tools import TASK_TOOLS

TEMPLATE = Path(__file__).parent.parent / "task_templates" / "solver" / "system.md.j2"
# Linux takes no longer text as one argument of a program (`MAX_ARG_STRLEN`).
MAX_COMMAND_BYTES = 2**17 - 1


class TaskConfig(Settings):
    """How a Task is put to the policy."""

    # Wordings that are drawn from, by template: `specification`, `bug_report`; None for all that a
    # Task has.
    styles: tuple[str, ...] | None = None


class TaskWorld:
    """Opens Tasks of a run of the factory, each try in a work tree of its own."""

    def __init__(
        self, run_folder: Path, *, open_desk: Callable[[Task], Desk], config: TaskConfig, seed: int
    ) -> None:
        """Index the run.

        Raises:
            ShardError: the run folder is not as its writer left it.
        """
        self._places = index_tasks(run_folder)
        self._open_desk, self._config, self._seed = open_desk, config, seed

    @contextmanager
    def open(self, prompt: str, *, draw: str) -> Iterator["TaskEnvironment"]:
        """Give the Task with this id, for the time of a block.

        Raises:
            ValueError: there is no such Task, or it has none of the wordings asked for.
            SandboxStoppedError, SandboxBrokenError, InstallError, OSError: the machine failed.
        """
        if prompt not in self._places:
            raise ValueError(f"{prompt} is no Task of the run, which has {len(self._places)}")
        task = read_task(self._places[prompt])
        instruction = draw_instruction(task, styles=self._config.styles, key=(self._seed, draw))
        desk = self._open_desk(task)
        with solver_bench(task, desk=desk) as workbench:
            yield TaskEnvironment(task, instruction=instruction, desk=desk, workbench=workbench)


def draw_instruction(
    task: Task, *, styles: tuple[str, ...] | None, key: tuple[object, ...]
) -> Instruction:
    """Draw a wording of the request: the same for the same key.

    Raises:
        ValueError: the Task has none of the styles.
    """
    found = [it for it in task.instructions if styles is None or it.style in styles]
    if not found:
        has = ", ".join(it.style for it in task.instructions)
        raise ValueError(f"{task.id} has the wordings {has}; expected one of {styles}")
    return found[int(content_id("instruction", *key), 16) % len(found)]


class TaskEnvironment:
    """Owns the workbench of one try at a Task."""

    tools = TASK_TOOLS

    def __init__(
        self, task: Task, *, instruction: Instruction, desk: Desk, workbench: Workbench
    ) -> None:
        self.messages = (
            Message(role="system", content=_how_to_work()),
            Message(role="user", content=instruction.text),
        )
        self._task, self._desk, self._workbench = task, desk, workbench
        self._before = read_work_tree(workbench.tree)

    def call(self, call: ToolCall) -> ToolResult:
        """Use a tool of the workbench, which says what is wrong with a wrong call.

        Raises:
            SandboxStoppedError, SandboxBrokenError, OSError: the machine failed.
        """
        arguments = call.arguments or {}
        command = arguments.get("command")
        if isinstance(command, str) and len(command.encode()) > MAX_COMMAND_BYTES:
            text = f"`command` is longer than {MAX_COMMAND_BYTES} bytes; write a file and run it"
            return ToolResult(ok=False, text=text)
        answer = self._workbench.use(Call(thought="", tool=call.name, arguments=arguments))
        return ToolResult(ok=answer.ok, text=answer.output)

    def finish(self, _said: str) -> Outcome:
        """Grade what is in the work tree; what the policy says of it counts for nothing.

        Raises:
            SandboxStoppedError, OSError: the machine failed.
        """
        patch = patch_between(self._before, self._workbench.finish())
        result = grade(self._task, patch, desk=self._desk)
        return Outcome(
            reward=_REWARDS[result.verdict],
            verdict=result.verdict,
            detail=result.detail,
            patch=patch,
        )


_REWARDS: dict[Verdict, float | None] = {
    "solved": 1.0,
    "unsolved": 0.0,
    "tampered": 0.0,
    # The machine failed; nothing was learnt.
    "invalid": None,
}


@cache
def _how_to_work() -> str:
    return TEMPLATE.read_text().strip()
