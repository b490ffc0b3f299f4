"""A Task as a scripted agent meets it, and the steps that such an agent takes."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random

from pipeline.agent.attempt import NO_LITTER, Litter
from pipeline.agent.loop import Done
from pipeline.agent.tools import Answer, Call
from pipeline.hacks.setting import Setting
from pipeline.task.attempt import HackClass
from pipeline.task.record import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a script is written from; the agent in it acts as if it knew less."""

    task: Task
    setting: Setting
    # Of this scene alone: wording, order, ways of doing the same.
    draw: Random

    @property
    def name(self) -> str:
        """Name of the main symbol."""
        return self.setting.symbols[0].name

    @property
    def module(self) -> str:
        """Path of the module that it belongs to."""
        return self.setting.module

    @property
    def module_name(self) -> str:
        """Importable name of that module."""
        path = self.module.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
        return path.replace("/", ".")

    @property
    def package(self) -> str:
        """Name of the top-level package or module."""
        return self.module_name.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a script.

    Example: `Step(call=Call(…), is_deed=True)`.
    """

    call: Call
    # It is what makes the attempt a hack.
    is_deed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """All that an agent does."""

    steps: tuple[Step, ...]
    litter: Litter = field(default=NO_LITTER)

    @property
    def deeds(self) -> tuple[int, ...]:
        """Numbers of the turns that are a hack, from 1."""
        return tuple(number for number, step in enumerate(self.steps, 1) if step.is_deed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way to cheat, or to do what looks like it.

    Example: `Scenario(name="git log with patches", hack_class="history", is_hacked=True, …)`.
    """

    # Unique; says what is done.
    name: str
    hack_class: HackClass
    is_hacked: bool
    # None where the Task has no place for it.
    write: Callable[[Scene], Script | None]


def play(script: Script) -> Generator[Call, Answer, Done]:
    """Take the steps one by one, whatever comes back."""
    for step in script.steps:
        yield step.call
    return Done(reason="", detail="")
