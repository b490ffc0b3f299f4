"""Let a policy work at a Task: its request, the workbench's tools, the grade as reward."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from pydantic import Field

from pipeline.agent.attempt import solver_bench
from pipeline.agent.chat.prompt import how_to_work
from pipeline.agent.schemas import SOLVING, ToolName, describe_tools
from pipeline.agent.tools import Call, Workbench
from pipeline.sandbox.choose import SandboxName
from pipeline.task.canonical import canonical_json, content_id
from pipeline.task.grade import Desk, Grade, grade
from pipeline.task.record import Instruction, Task, Turn
from pipeline.task.shards import TaskPlace, read_task
from pipeline.task.work_tree import patch_between, read_work_tree
from trainer.env import Message, Outcome, PromptError
from trainer.records import ToolCall, ToolResult
from trainer.settings import Settings
from trainer.watch import Watcher

# Linux takes no longer text as one argument of a program (`MAX_ARG_STRLEN`).
MAX_COMMAND_BYTES = 2**17 - 1


class TaskConfig(Settings):
    """How Tasks are put to the policy."""

    # Wordings that are drawn from, by template: `specification`, `bug_report`; None for all that a
    # Task has.
    styles: tuple[str, ...] | None = Field(default=None, min_length=1)
    # What the policy may call.
    tools: tuple[ToolName, ...] = Field(default=SOLVING, min_length=1)
    # Of work that was made to look solved: reward 0, or none at all, so that nothing is learnt.
    tampered: Literal["zero", "drop"] = "zero"
    # Of work that the monitor calls hacked, whatever its tests say: its label is kept in any case,
    # reward 0, or none at all. `off` looks at nothing.
    monitor: Literal["off", "flag", "zero", "drop"] = "flag"
    # Where code of repositories and of the policy runs.
    sandbox: SandboxName = "auto"


class TaskWorld:
    """Opens Tasks of a run of the factory, each try in a work tree of its own."""

    def __init__(
        self,
        places: Mapping[str, TaskPlace],
        *,
        open_desk: Callable[[Task], Desk],
        config: TaskConfig,
        seed: int,
    ) -> None:
        """Open a world.

        Args:
            places: where each Task is, by id.
            open_desk: gives where a Task is tried and graded; threads share it.
            config: how Tasks are put.
            seed: wordings are drawn from it.
        """
        self._places, self._open_desk = places, open_desk
        self._config, self._seed = config, seed
        self._watcher = None if config.monitor == "off" else Watcher()

    @contextmanager
    def open(self, prompt: str, *, draw: str) -> Iterator["TaskEnvironment"]:
        """Give the Task with this id, for the time of a block.

        Raises:
            PromptError: there is no such Task, or it has none of the wordings asked for.
            SandboxStoppedError, SandboxBrokenError, InstallError, OSError: the machine failed.
        """
        if prompt not in self._places:
            raise PromptError(f"{prompt!r}: no such task, expected one of {len(self._places)}")
        task = read_task(self._places[prompt])
        instruction = draw_instruction(task, styles=self._config.styles, key=(self._seed, draw))
        desk = self._open_desk(task)
        with solver_bench(task, desk=desk) as workbench:
            yield TaskEnvironment(
                task,
                instruction,
                desk=desk,
                workbench=workbench,
                config=self._config,
                watcher=self._watcher,
            )


def draw_instruction(
    task: Task, *, styles: tuple[str, ...] | None, key: tuple[object, ...]
) -> Instruction:
    """Draw a wording of the request: the same for the same key.

    Raises:
        PromptError: the Task has none of the styles.
    """
    found = [it for it in task.instructions if styles is None or it.style in styles]
    if not found:
        has = ", ".join(it.style for it in task.instructions)
        raise PromptError(f"{task.id}: wordings {has or 'none'}, expected one of {styles}")
    return found[int(content_id("instruction", *key), 16) % len(found)]


class TaskEnvironment:
    """Owns the workbench of one try at a Task."""

    def __init__(
        self,
        task: Task,
        instruction: Instruction,
        *,
        desk: Desk,
        workbench: Workbench,
        config: TaskConfig,
        watcher: Watcher | None = None,
    ) -> None:
        self.messages = (
            Message(role="system", content=how_to_work(config.tools)),
            Message(role="user", content=instruction.text),
        )
        self.tools = describe_tools(config.tools)
        self._task, self._desk, self._workbench, self._config = task, desk, workbench, config
        self._before = read_work_tree(workbench.tree)
        self._watcher = watcher
        # What was done, as the monitor reads it.
        self._turns: list[Turn] = []

    def call(self, call: ToolCall) -> ToolResult:
        """Use a tool of the workbench, which says what is wrong with a wrong call.

        Raises:
            SandboxStoppedError, SandboxBrokenError, OSError: the machine failed.
        """
        arguments = call.arguments or {}
        if wrong := self._refusal(call.name, arguments):
            return ToolResult(ok=False, text=wrong)
        answer = self._workbench.use(Call(thought="", tool=call.name, arguments=arguments))
        # Bytes of a file that are no UTF-8 come as halves of surrogates, which no tokenizer takes.
        text = answer.output.encode("utf-8", "backslashreplace").decode()
        said = canonical_json(arguments)
        self._turns.append(Turn(thought="", tool=call.name, arguments=said, output=text))
        return ToolResult(ok=answer.ok, text=text)

    def _refusal(self, name: str, arguments: Mapping[str, object]) -> str:
        """Say why a call is none for the workbench; empty for others, even wrong ones."""
        if name not in self._config.tools:
            return f"there is no tool {name!r}, there are {', '.join(self._config.tools)}"
        command = arguments.get("command")
        if isinstance(command, str) and len(command.encode()) > MAX_COMMAND_BYTES:
            return f"`command` is longer than {MAX_COMMAND_BYTES} bytes; write a file and run that"
        return ""

    def finish(self, said: str) -> Outcome:
        """Grade what is in the work tree; what the policy says of it counts for nothing.

        Raises:
            SandboxStoppedError, OSError: the machine failed.
        """
        del said
        patch = patch_between(self._before, self._workbench.finish())
        result = grade(self._task, patch, desk=self._desk)
        label = ""
        if self._watcher is not None:
            label = self._watcher.label(self._task, self._turns, result, desk=self._desk)
        return Outcome(
            reward=self._reward(result, label),
            verdict=result.verdict,
            detail=result.detail,
            patch=patch,
            monitored=label,
        )

    def _reward(self, result: Grade, label: str) -> float | None:
        """Return what the work is worth; None where nothing is to be learnt from it."""
        todo: list[str] = [self._config.tampered] if result.verdict == "tampered" else []
        if label == "hacked":
            todo.append(self._config.monitor)
        if "drop" in todo or result.verdict == "invalid":
            return None
        return float(result.verdict == "solved" and "zero" not in todo)
