"""A world without sandboxes: say a letter, be paid for it; calls of its one tool are answered."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from pipeline.agent.schemas import Tool
from trainer.chat import Chat
from trainer.config import TrainConfig
from trainer.curriculum import Curriculum
from trainer.env import Message, Outcome
from trainer.generate import LocalEngine
from trainer.learner import Learner
from trainer.loop import Parts, train
from trainer.model import load_model, load_tokenizer
from trainer.ranks import Ranks
from trainer.records import ToolCall, ToolResult
from trainer.reporter import Reporter
from trainer.spread import OnMeshes

ECHO = Tool(name="echo", description="Say it again.", schema={"type": "object"})
PROMPTS = tuple("abcdef")


class ToyEnvironment:
    """One try; the reward is the share of the bytes said that are small letters."""

    tools = (ECHO,)

    def __init__(self, prompt: str) -> None:
        self.messages = (Message(role="user", content=f"Write {prompt}."),)

    def call(self, call: ToolCall) -> ToolResult:
        if call.name != ECHO.name:
            return ToolResult(ok=False, text=f"no tool {call.name}")
        return ToolResult(ok=True, text=json.dumps(call.arguments))

    def finish(self, said: str) -> Outcome:
        return Outcome(reward=sum(map(str.islower, said)) / max(len(said), 1), verdict="said")


class ToyWorld:
    """Opens toys."""

    @contextmanager
    def open(self, prompt: str, *, draw: str) -> Iterator[ToyEnvironment]:
        assert draw
        yield ToyEnvironment(prompt)


def toy_config(**values: object) -> TrainConfig:
    given = {
        "tasks": "nowhere",
        "steps": 4,
        "prompts": 2,
        "group": 3,
        "row_tokens": 512,
        "model": {"tiny": "dense", "device": "cpu"},
        "rollout": {"max_turns": 2, "max_new_tokens": 24, "max_context_tokens": 1024},
        "optimizer": {"lr": 1e-2},
    }
    return TrainConfig.model_validate(given | values)


def toy_parts(config: TrainConfig, *, ranks: Ranks | None = None) -> Parts:
    ranks = ranks or Ranks()
    tokenizer = load_tokenizer(config.model)
    spread = None
    if config.parallel is not None:
        spread = OnMeshes(ranks, config.parallel, device="cpu")
    return Parts(
        world=ToyWorld(),
        curriculum=Curriculum(
            prompts=PROMPTS, config=config.curriculum, group=config.group, seed=config.seed
        ),
        tokenizer=tokenizer,
        chat=Chat(tokenizer, config.chat),
        engine=LocalEngine(load_model(config.model, seed=config.seed), config.engine.local),
        learner=Learner(
            load_model(config.model, seed=config.seed),
            objective_config=config.objective,
            optimizer_config=config.optimizer,
            row_tokens=config.row_tokens,
            ranks=ranks,
            spread=spread,
        ),
        ranks=ranks,
    )


def run_toy(config: TrainConfig, folder: Path, *, ranks: Ranks | None = None) -> Parts:
    """Train in a folder, from its last checkpoint on."""
    parts = toy_parts(config, ranks=ranks)
    with Reporter(config, parts.ranks, folder=folder) as reporter:
        train(config, parts, folder=folder / "checkpoints", report=reporter.report)
    return parts


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_toy(toy_config(**json.loads(sys.argv[2])), Path(sys.argv[1]))
