"""Make the optimizer: which parameters decay, which do not, and how fast they move at a step."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import Parameter

from trainer.settings import Settings


class OptimizerConfig(Settings):
    """AdamW, after a warm-up at a constant rate."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Parameters that are treated alike."""

    # `decayed` or `undecayed`.
    name: str
    members: Mapping[str, Parameter]


def param_groups(model: nn.Module) -> tuple[Group, ...]:
    """Return each trained parameter once, in the group that it belongs to."""
    embedded = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    trained = {name: it for name, it in model.named_parameters() if it.requires_grad}
    decayed = {name: it for name, it in trained.items() if it.ndim > 1 and id(it) not in embedded}
    rest = {name: it for name, it in trained.items() if name not in decayed}
    return (Group(name="decayed", members=decayed), Group(name="undecayed", members=rest))


def make_optimizer(groups: Iterable[Group], *, config: OptimizerConfig) -> torch.optim.AdamW:
    """Return an AdamW over the groups."""
    return torch.optim.AdamW(
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
    )


def set_rate(optimizer: torch.optim.Optimizer, step: int, *, config: OptimizerConfig) -> float:
    """Set and return the rate of a step, from 0: it is a function of the step alone."""
    share = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    for group in optimizer.param_groups:
        group["lr"] = config.lr * share
    return config.lr * share


def clip_gradients(parameters: Iterable[Parameter], *, max_norm: float) -> float:
    """Scale gradients down to a norm of all of them together; return the norm before.

    With a norm that is no number the gradients are left as they are.
    """
    gradients = [it.grad for it in parameters if it.grad is not None]
    norm = global_norm(gradients)
    if norm > max_norm and norm < float("inf"):
        for gradient in gradients:
            gradient.mul_(max_norm / norm)
    return norm


def global_norm(gradients: Iterable[Tensor]) -> float:
    """Return the Euclidean norm of all tensors together, summed in double precision.

    Example:
        >>> global_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        5.0
    """
    squares = [torch.linalg.vector_norm(it, dtype=torch.float64).square() for it in gradients]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0


def membership(groups: Iterable[Group]) -> list[str]:
    """Return one line a group, for people: its size, and the names of its parameters."""
    return [
        f"AdamW, {group.name}: {len(group.members)} tensors, "
        f"{sum(it.numel() for it in group.members.values()):,} weights: "
        f"{', '.join(shorten_names(group.members))}"
        for group in groups
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
