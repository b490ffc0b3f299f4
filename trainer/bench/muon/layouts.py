"""Take a step of sharded Muon on ranks of this machine, and count what it takes.

Ranks are processes that meet over gloo; each counts what it really does.
"""

import logging
import multiprocessing
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from pipeline.task.claims import NotMeasuredError
from trainer.mesh import MeshConfig, make_meshes
from trainer.muon.bound import least_bytes
from trainer.muon.config import MuonConfig
from trainer.muon.costs import Cluster
from trainer.muon.families import rules_for
from trainer.muon.jobs import PlanOptions
from trainer.muon.sharded import ShardedMuon
from trainer.muon.units import sort_parameters
from trainer.parallel import parallelize
from trainer.tiny import TinyKind, random_model, tiny_config

WAIT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLayout:
    """Ranks, and how they hold a model.

    Example: `RankLayout(name="4 ranks", kind="qwen3_moe", world=4, meshes=MeshConfig())`.
    """

    # For people.
    name: str
    kind: TinyKind
    world: int
    meshes: MeshConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a step took, all ranks together."""

    layout: RankLayout
    num_matrices: int
    # How often one was orthogonalized.
    num_orthogonalized: int
    num_bytes: int
    # Bytes that no plan goes below, if each rank is a machine of its own.
    least_bytes: int


FULL: tuple[RankLayout, ...] = (
    RankLayout(
        name="dense on 2 x 2 ranks",
        kind="dense",
        world=4,
        meshes=MeshConfig(dense_replicate=2),
    ),
    RankLayout(name="experts on 4 ranks", kind="qwen3_moe", world=4, meshes=MeshConfig()),
    RankLayout(
        name="experts on 8 ranks, EP 4, 2 x 4",
        kind="qwen3_moe",
        world=8,
        meshes=MeshConfig(dense_replicate=2, expert_replicate=2, expert_parallel=4),
    ),
    RankLayout(
        name="MLA on 8 ranks, CP 2, EP 8",
        kind="deepseek_v3",
        world=8,
        meshes=MeshConfig(context=2, expert_parallel=8),
    ),
)
QUICK = FULL[:1]


def count(layout: RankLayout) -> Counted:
    """Take one step.

    Raises:
        NotMeasuredError: a rank did not come to the end.
    """
    # Of a server without threads: this process may have some, which a fork would lose.
    context = multiprocessing.get_context("forkserver")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as at_last:
        told: list[Connection] = []
        for rank in range(layout.world):
            receiver, sender = context.Pipe(duplex=False)
            arguments = (rank, layout, str(Path(folder) / "store"), sender)
            process = context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            at_last.callback(_end, process)
            # So that the end of the process is the end of the pipe.
            sender.close()
            told.append(receiver)
        found = [_answer(it, layout) for it in told]
    return Counted(
        layout=layout,
        num_matrices=found[0]["units"],
        num_orthogonalized=sum(it["matrices"] for it in found),
        num_bytes=sum(it["bytes"] for it in found),
        least_bytes=found[0]["least"],
    )


def _answer(told: Connection, layout: RankLayout) -> dict[str, int]:
    try:
        if told.poll(WAIT_S):
            answer: dict[str, int] = told.recv()
            return answer
    except EOFError:
        pass
    raise NotMeasuredError(f"{layout.name}: a rank gave no answer")


def _end(process: BaseProcess) -> None:
    process.kill()
    process.join()


def _work(rank: int, layout: RankLayout, path: str, answers: Connection) -> None:
    """Take one rank's part in a step; what it takes is the same for all gradients."""
    # Torch would tell of each gather that it takes two steps.
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    store, *_ = next(rendezvous(f"file://{path}?rank={rank}&world_size={layout.world}"))
    dist.init_process_group(
        "gloo",
        store=store,
        rank=rank,
        world_size=layout.world,
        timeout=timedelta(seconds=WAIT_S),
    )
    model = random_model(tiny_config(layout.kind), seed=0)
    config = MuonConfig()
    shapes = {name: tuple(it.shape) for name, it in model.named_parameters()}
    membership = sort_parameters(shapes, rules_for(model.config, choices=config.groups))
    parallelize(model, make_meshes(layout.meshes, world=layout.world))
    muon = ShardedMuon(
        dict(model.named_parameters()),
        membership,
        config,
        # Each rank a machine of its own: what leaves it counts.
        cluster=Cluster(num_ranks=layout.world, ranks_per_node=1),
        options=PlanOptions(orthogonalize=config.orthogonalize, redo="never"),
    )
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    muon.step()
    answers.send({
        "units": len(muon.plan.units),
        "matrices": muon.counts["matrices"],
        "bytes": muon.counts["bytes"],
        "least": least_bytes(muon.plan),
    })
    dist.destroy_process_group()
