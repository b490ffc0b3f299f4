"""Make the optimizer: what Muon trains, what AdamW decays, and how fast both move at a step."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import Parameter
from transformers import PreTrainedModel

from trainer.muon.batched import Muon
from trainer.muon.config import MuonConfig
from trainer.muon.costs import Cluster
from trainer.muon.families import rules_for
from trainer.muon.sharded import ShardedMuon
from trainer.muon.units import Membership, sort_parameters
from trainer.settings import Settings


class OptimizerConfig(Settings):
    """AdamW, and Muon for matrices if chosen, after a warm-up at a constant rate."""

    # With `muon` embeddings, head, norms and biases stay AdamW's.
    kind: Literal["adamw", "muon"] = "adamw"
    # Of AdamW; `muon.lr` is that of matrices.
    lr: float = Field(default=1e-6, ge=0)
    # Steps until `lr` is reached, from `lr / warmup_steps` on; 0 for none.
    warmup_steps: int = Field(default=0, ge=0)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.95, ge=0, lt=1)
    eps: float = Field(default=1e-8, gt=0)
    # Of matrices; vectors and embeddings do not decay.
    weight_decay: float = Field(default=0.0, ge=0)
    # Largest norm of the gradient of all parameters together; larger ones are scaled down.
    max_grad_norm: float = Field(default=1.0, gt=0)
    muon: MuonConfig = MuonConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Parameters that are treated alike."""

    # `decayed` or `undecayed`, of AdamW; `muon`.
    name: str
    members: Mapping[str, Parameter]
    # Of Muon: the matrices in them.
    membership: Membership | None = None


def param_groups(model: nn.Module, *, config: OptimizerConfig | None = None) -> tuple[Group, ...]:
    """Return each trained parameter once, in the group that it belongs to.

    Raises:
        ValueError: no rules say which matrices of the model Muon trains.
    """
    trained = {name: it for name, it in model.named_parameters() if it.requires_grad}
    groups: tuple[Group, ...] = ()
    if config is not None and config.kind == "muon":
        assert isinstance(model, PreTrainedModel), "a module without a configuration"
        rules = rules_for(model.config, choices=config.muon.groups)
        found = sort_parameters({name: tuple(it.shape) for name, it in trained.items()}, rules)
        members = {name: trained.pop(name) for name in found.muon}
        groups = (Group(name="muon", members=members, membership=found),)
    embedded = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    decayed = {name: it for name, it in trained.items() if it.ndim > 1 and id(it) not in embedded}
    rest = {name: it for name, it in trained.items() if name not in decayed}
    return (*groups, Group(name="decayed", members=decayed), Group(name="undecayed", members=rest))


class Optimizers:
    """Owns the optimizers of a model, each of which trains parameters of its own."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.parts = tuple(parts)

    def step(self) -> None:
        """Take a step with each."""
        for part in self.parts:
            part.step()

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=True)


def make_optimizer(
    groups: Iterable[Group], *, config: OptimizerConfig, world: int = 1
) -> Optimizers:
    """Return an AdamW over its groups, and a Muon over its own where there is one.

    On several ranks each matrix is orthogonalized where Muon's plan says; all must call it.
    """
    groups = tuple(groups)
    muons = [_muon(it, config.muon, world=world) for it in groups if it.membership is not None]
    return Optimizers([_adamw([it for it in groups if it.membership is None], config), *muons])


def _adamw(groups: Sequence[Group], config: OptimizerConfig) -> torch.optim.AdamW:
    parameters = [it for group in groups for it in group.members.values()]
    adamw = torch.optim.AdamW(
        [
            {
                "params": list(group.members.values()),
                "weight_decay": config.weight_decay if group.name == "decayed" else 0.0,
            }
            for group in groups
        ],
        lr=config.lr,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        # Those on several meshes are stepped one after another.
        foreach=False if any(isinstance(it, DTensor) for it in parameters) else None,
    )
    # Moments are there from the start: a checkpoint fills what it finds.
    for parameter in parameters:
        adamw.state[parameter] = {
            "step": torch.tensor(0.0),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return adamw


def _muon(group: Group, config: MuonConfig, *, world: int) -> Muon | ShardedMuon:
    assert group.membership is not None
    if world == 1:
        return Muon(group.members, group.membership, config)
    # As torchrun tells; else all are taken to be neighbours.
    per_node = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    cluster = Cluster(num_ranks=world, ranks_per_node=per_node)
    return ShardedMuon(group.members, group.membership, config, cluster=cluster)


def set_rate(optimizer: Optimizers, step: int, *, config: OptimizerConfig) -> float:
    """Set the rates of a step, from 0, and return that of AdamW: functions of the step alone."""
    share = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    for part in optimizer.parts:
        rate = config.muon.lr if isinstance(part, Muon | ShardedMuon) else config.lr
        for group in part.param_groups:
            group["lr"] = rate * share
    return config.lr * share


def clip_gradients(parameters: Iterable[Parameter], *, norm: float, max_norm: float) -> None:
    """Scale gradients down to a norm of all of them together, which now is `norm`.

    With a norm that is no number the gradients are left as they are.
    """
    if max_norm < norm < float("inf"):
        for gradient in (it.grad for it in parameters if it.grad is not None):
            gradient.mul_(max_norm / norm)


def global_norm(gradients: Iterable[Tensor]) -> float:
    """Return the Euclidean norm of all tensors together, summed in double precision.

    Example:
        >>> global_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        5.0
    """
    squares = [torch.linalg.vector_norm(it, dtype=torch.float64).square() for it in gradients]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0


def membership(groups: Iterable[Group]) -> list[str]:
    """Return lines for people: each group's size, and what its parameters are called."""
    return [
        line
        for group in groups
        for line in ([_adamw_line(group)] if group.membership is None else _muon_lines(group))
    ]


def _adamw_line(group: Group) -> str:
    return (
        f"AdamW, {group.name}: {len(group.members)} tensors, "
        f"{sum(it.numel() for it in group.members.values()):,} weights: "
        f"{', '.join(shorten_names(group.members))}"
    )


def _muon_lines(group: Group) -> list[str]:
    """Return a line for all matrices of one shape that are called alike."""
    assert group.membership is not None
    units = group.membership.units
    counts = Counter((shorten_names([it.parameter])[0], it.shape) for it in units)
    return [
        f"Muon: {num} matrices of {rows} x {cols}, {num * rows * cols:,} weights: {name}"
        for (name, (rows, cols)), num in counts.items()
    ]


def shorten_names(names: Iterable[str]) -> list[str]:
    """Return names with the numbers of layers and experts replaced, each once.

    Example:
        >>> shorten_names(["layers.0.q.weight", "layers.1.q.weight", "norm.weight"])
        ['layers.*.q.weight', 'norm.weight']
    """
    starred = (
        ".".join("*" if part.isdigit() else part for part in name.split(".")) for name in names
    )
    return list(dict.fromkeys(starred))
