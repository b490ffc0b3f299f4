"""Note which experts a model chose for each token, and have it choose the same ones again.

What samples and what trains differ by rounding, which now and then gives a token another expert and
with it another probability. Replayed choices take that away (rollout routing replay, R3,
arXiv 2510.11370); the weights of the chosen experts are computed anew, so that the router learns.

Letters of shapes: T tokens, L layers with a router, K experts of a token, E experts of a layer.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

# Logits [T, E] of the experts, their weights [T, K], which they are [T, K].
Routed = tuple[Tensor, Tensor, Tensor]


def routers(model: PreTrainedModel) -> list[nn.Module]:
    """Return what chooses experts, in the order of the layers; of a dense model none."""
    return [it for it in model.modules() if type(it).__name__ in _WEIGHTS]


def require_routers(model: PreTrainedModel, *, name: str) -> None:
    """Refuse a model whose choices cannot be replayed.

    Raises:
        ValueError: it has no router that is known here.
    """
    if not routers(model):
        raise ValueError(
            f"{name}: rollout.router_replay with a model that has no router of a known kind; "
            f"expected one of {', '.join(sorted(_WEIGHTS))}, or no replay"
        )


@contextmanager
def recording(found: list[nn.Module]) -> Iterator[list[Tensor]]:
    """Collect what each router chooses [T, K] while the model runs once."""
    chosen: list[Tensor] = []
    with ExitStack() as stack:
        for router in found:
            hook = router.register_forward_hook(partial(_note, chosen))
            stack.callback(hook.remove)
        yield chosen


@contextmanager
def replaying(model: PreTrainedModel, experts_TLK: Tensor) -> Iterator[None]:
    """Have each router choose these experts while the model runs; where they are -1, its own."""
    found = routers(model)
    assert experts_TLK.shape[1] == len(found), (experts_TLK.shape, len(found))
    with ExitStack() as stack:
        each_TK = experts_TLK.to(model.device).unbind(1)
        for router, experts_TK in zip(found, each_TK, strict=True):
            hook = router.register_forward_hook(partial(_force, experts_TK))
            stack.callback(hook.remove)
        yield


def _note(chosen: list[Tensor], _: nn.Module, __: object, routed: Routed) -> None:
    chosen.append(routed[2])


def _force(experts_TK: Tensor, router: nn.Module, _: object, routed: Routed) -> Routed:
    logits_TE, _, own_TK = routed
    chosen_TK = torch.where(experts_TK >= 0, experts_TK.to(own_TK.dtype), own_TK)
    return logits_TE, _WEIGHTS[type(router).__name__](router, logits_TE, chosen_TK), chosen_TK


def _of_softmax(router: nn.Module, logits_TE: Tensor, chosen_TK: Tensor) -> Tensor:
    weights_TK = logits_TE.softmax(-1, dtype=torch.float32).gather(1, chosen_TK)
    # Mixtral has no such switch, and always divides.
    if getattr(router, "norm_topk_prob", True):
        weights_TK = weights_TK / weights_TK.sum(-1, keepdim=True)
    return weights_TK


def _of_softmax_rounded(router: nn.Module, logits_TE: Tensor, chosen_TK: Tensor) -> Tensor:
    return _of_softmax(router, logits_TE, chosen_TK).to(logits_TE.dtype)


def _of_sigmoid(router: nn.Module, logits_TE: Tensor, chosen_TK: Tensor) -> Tensor:
    weights_TK = logits_TE.sigmoid().gather(1, chosen_TK)
    if router.norm_topk_prob:
        weights_TK = weights_TK / (weights_TK.sum(-1, keepdim=True) + 1e-20)
    return weights_TK * cast("float", router.routed_scaling_factor)


# By the name of the router's class: the weights [T, K] of experts that were chosen.
_WEIGHTS: dict[str, Callable[[nn.Module, Tensor, Tensor], Tensor]] = {
    "DeepseekV3TopkRouter": _of_sigmoid,
    "MixtralTopKRouter": _of_softmax,
    "Qwen3MoeTopKRouter": _of_softmax_rounded,
}
