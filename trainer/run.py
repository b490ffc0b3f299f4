"""Put a run together from its configuration, and train."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from trainer.chat import Chat
from trainer.config import TrainConfig, equation
from trainer.curriculum import Curriculum
from trainer.desks import open_world
from trainer.engines import open_engine
from trainer.learner import Learner
from trainer.loop import Parts, train
from trainer.mesh import check_meshes
from trainer.model import load_model, load_tokenizer
from trainer.optimizer import membership
from trainer.ranks import Ranks, join_ranks, part
from trainer.reporter import Reporter, require_same
from trainer.routing import require_routers
from trainer.spread import OnMeshes
from trainer.trackers import require_trackers

# Numbers held for a weight: itself, its gradient, two moments.
TRAINED = 4


def run(config: TrainConfig, folder: Path) -> None:
    """Train from the last checkpoint in a folder, or from the start, and report each step.

    Raises:
        ValueError: shards, model, tokenizer, trackers or checkpoint cannot be used.
        RuntimeError, OSError: the machine, the engine or another rank failed.
    """
    require_trackers(config.trackers)
    # Before the ranks meet, so that none has written to the folder yet.
    require_same(config, folder)
    ranks = join_ranks(config.ranks)
    try:
        with ExitStack() as stack:
            parts = stack.enter_context(open_parts(config, ranks=ranks))
            reporter = stack.enter_context(Reporter(config, ranks, folder=folder))
            parts = replace(parts, watch=reporter.watch)
            reporter.say(equation(config, world=ranks.world))
            for line in membership(parts.learner.groups):
                reporter.say(line)
            train(config, parts, folder=folder / "checkpoints", report=reporter.report)
    finally:
        part()


@contextmanager
def open_parts(config: TrainConfig, *, ranks: Ranks) -> Iterator[Parts]:
    """Give what a run works with, for the time of a block."""
    tokenizer = load_tokenizer(config.model)
    chat = Chat(tokenizer, config.chat)
    with open_world(config.tasks, config=config.task, seed=config.seed) as (world, prompts):
        model = load_model(
            config.model, seed=config.seed, copies=_count_copies(config, world=ranks.world)
        )
        if config.rollout.router_replay:
            require_routers(model, name=config.model.origin)
        spread = None
        if config.parallel is not None:
            spread = OnMeshes(ranks, config.parallel, device=model.device.type)
        yield Parts(
            world=world,
            curriculum=Curriculum(
                prompts=prompts, config=config.curriculum, group=config.group, seed=config.seed
            ),
            tokenizer=tokenizer,
            chat=chat,
            engine=open_engine(config),
            learner=Learner(
                model,
                objective_config=config.objective,
                optimizer_config=config.optimizer,
                row_tokens=config.row_tokens,
                ranks=ranks,
                spread=spread,
            ),
            ranks=ranks,
        )


def _count_copies(config: TrainConfig, *, world: int) -> int:
    """Count the numbers that a rank holds for each weight of the model.

    Ranks that hold parts load and copy whole models before they part them.
    """
    objective = config.objective
    has_teacher = bool(objective.distill.weight) and objective.distill.teacher != "live"
    has_reference = bool(objective.loss.kl_coef)
    copies = TRAINED + has_teacher + has_reference
    if config.parallel is not None:
        check_meshes(config.parallel, world=world)
        replicas = max(config.parallel.dense_replicate, config.parallel.expert_replicate)
        copies = 1 + has_teacher + has_reference + math.ceil(copies * replicas / world)
    return copies + bool(config.staleness) + (config.engine.kind == "local")
