"""A policy whose words are a script, and a small world that it acts in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.agent.schemas import Tool
from pipeline.sandbox.protocol import SandboxStoppedError
from trainer.chat import Chat, ChatConfig
from trainer.engine import Generated, Request
from trainer.env import Message, Outcome
from trainer.records import Ids, ToolCall, ToolResult
from trainer.tiny import tiny_tokenizer

# Given the context as text, what the policy says.
Script = Callable[[str], str]
HEADER = "<|im_start|>assistant\n"


def tiny_chat(**settings: Any) -> Chat:
    return Chat(tiny_tokenizer(), ChatConfig(**settings))


def ids_of(text: str) -> Ids:
    return np.array(tiny_tokenizer().encode(text), np.int64)


def text_of(ids: Ids) -> str:
    return str(tiny_tokenizer().decode(ids.tolist()))


def in_turn(*words: str) -> Script:
    """Say one text after the other, whatever comes back; a new context goes on with the first."""
    return lambda context: words[context.count(HEADER) - 1]


@dataclass(slots=True)
class ScriptedEngine:
    """Says what a script does, token by token, each with a log-probability of its own."""

    script: Script
    version: int = 3
    # All that was asked, by round.
    asked: list[list[Request]] = field(default_factory=list)

    def generate(self, requests: Sequence[Request]) -> list[Generated]:
        self.asked.append(list(requests))
        return [self._say(it) for it in requests]

    def _say(self, request: Request) -> Generated:
        words = ids_of(self.script(text_of(request.ids)) + "<|im_end|>")
        ids = words[: request.max_new_tokens]
        return Generated(
            ids=ids,
            logprobs=-np.arange(1, len(ids) + 1, dtype=np.float32),
            stop="end" if len(ids) == len(words) else "length",
            version=self.version,
        )

    def sync(self, _: Mapping[str, Any], *, version: int) -> None:
        self.version = version

    def close(self) -> None:
        pass


ECHO = Tool(name="echo", description="Say it again.", schema={"type": "object"})


@dataclass(slots=True)
class Room:
    """An environment that says again what it is told; a prompt tells what goes wrong in it."""

    prompt: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = (ECHO,)
    heard: list[dict[str, object]] = field(default_factory=list)

    def call(self, call: ToolCall) -> ToolResult:
        if self.prompt == "breaks":
            raise OSError("no space\nleft")
        if self.prompt == "stopping":
            raise SandboxStoppedError("the run is being stopped")
        assert call.arguments is not None
        self.heard.append(call.arguments)
        if call.name != "echo":
            return ToolResult(ok=False, text=f"there is no tool {call.name!r}")
        return ToolResult(ok=True, text=str(call.arguments.get("text", "")))

    def finish(self, said: str, /) -> Outcome:
        if self.prompt == "ungraded":
            return Outcome(reward=None, verdict="invalid", detail="the machine failed")
        return Outcome(reward=float(len(self.heard)), verdict="counted", detail=said)


@dataclass(slots=True)
class Rooms:
    """A world of rooms; `shut` is one that cannot be opened."""

    # Prompts of what is open now, and draws of what ever was.
    open_now: list[str] = field(default_factory=list)
    draws: list[str] = field(default_factory=list)

    @contextmanager
    def open(self, prompt: str, *, draw: str) -> Iterator[Room]:
        if prompt == "shut":
            raise OSError("no room")
        self.draws.append(draw)
        self.open_now.append(prompt)
        try:
            yield Room(prompt, (Message(role="user", content=f"Room {prompt}."),))
        finally:
            self.open_now.remove(prompt)


def echo(*texts: str) -> str:
    """Write calls of `echo`."""
    return "".join(
        f'<tool_call>\n{{"name": "echo", "arguments": {{"text": "{text}"}}}}\n</tool_call>'
        for text in texts
    )
