"""Muon over ranks that hold parts of matrices: each matrix is orthogonalized once, by its owner.

What is done, by whom and when is a plan's (`trainer.muon.plan`); this carries it out. Updates
travel in the dtype that they are orthogonalized in, so that nothing is lost on the way. No
parameter is ever whole anywhere but at the owners of its units.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.muon.apply import settle, update_of
from trainer.muon.config import MuonConfig
from trainer.muon.costs import Cluster
from trainer.muon.exchange import ExchangeError, Flight, Way, open_ways, start
from trainer.muon.jobs import Kind, Leg, PlanOptions, Transfer
from trainer.muon.layout import box_of
from trainer.muon.moves import held, owned
from trainer.muon.orthogonalize import orthogonalize, product_dtype, wire_dtype
from trainer.muon.placed import layout_of, local_part
from trainer.muon.plan import digest, make_plan
from trainer.muon.units import Box, Membership


class ShardedMuon(torch.optim.Optimizer):
    """Muon over the parameters that a membership names, plain tensors or DTensors.

    Every rank makes it and steps it together with the others.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        membership: Membership,
        config: MuonConfig,
        *,
        cluster: Cluster,
        options: PlanOptions | None = None,
    ) -> None:
        """Plan, agree on the plan, and open the connections that it needs.

        Raises:
            ValueError: a parameter cannot be planned, or ranks have other plans.
        """
        self.config = config
        self._named = {name: parameters[name] for name in membership.muon}
        super().__init__([{"params": list(self._named.values())}], {"lr": config.lr})
        for parameter in self._named.values():
            self.state[parameter]["momentum_buffer"] = torch.zeros_like(
                parameter, dtype=torch.float32
            )
        self.plan = make_plan(
            {name: layout_of(name, it) for name, it in self._named.items()},
            membership.units,
            cluster=cluster,
            options=options or PlanOptions(orthogonalize=config.orthogonalize),
        )
        self._agree()
        self._ways = open_ways(self.plan)
        self._rank = dist.get_rank()
        # Of each parameter that this rank holds a part of: which.
        self._boxes = {
            name: box
            for name, it in self._named.items()
            if (box := box_of(layout_of(name, it), self._rank)) is not None
        }
        self._num_steps = 0
        self.device = next(iter(self._named.values())).device
        self.names = tuple(self._named)
        # Since it was made: matrices orthogonalized here, all-to-alls, bytes sent to other ranks.
        self.counts: Counter[str] = Counter()

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step; a parameter without a gradient here has one of zeros.

        Raises:
            ExchangeError: another rank did not come.
        """
        with torch.enable_grad():
            loss = None if closure is None else closure()
        work: dict[int, _Work] = {}
        for it in self.plan.steps:
            if it.kind == "pack":
                work[it.job] = _Work(self, it.job)
            try:
                work[it.job].do(it.kind)
            except RuntimeError as error:
                why = str(error).partition("\n")[0]
                raise ExchangeError(
                    f"optimizer step {self._num_steps}, job {it.job}, {it.kind}: rank "
                    f"{self._rank} waits in vain: {why}"
                ) from error
            if it.kind == "apply":
                del work[it.job]
        self._num_steps += 1
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` gave; the plan is no part of it, and agreed upon anew."""
        super().load_state_dict(state_dict)
        for number, parameter in enumerate(self._named.values()):
            momentum = state_dict["state"][number]["momentum_buffer"]
            self.state[parameter]["momentum_buffer"] = momentum.float().clone()
        self._agree()

    def part_of(self, name: str, box: Box, *, momentum: bool = False) -> Tensor:
        """Return the view [R, C] of a box that this rank holds of a parameter."""
        parameter = self._named[name]
        whole = self.state[parameter]["momentum_buffer"] if momentum else parameter
        return _view(local_part(whole), box, self._boxes[name])

    def grad_of(self, name: str, box: Box) -> Tensor:
        """Return the gradient [R, C] of a box, zeros where there is none."""
        grad = self._named[name].grad
        if grad is None:
            return torch.zeros_like(self.part_of(name, box))
        return _view(local_part(grad), box, self._boxes[name])

    def way(self, job: int, leg: Leg) -> Way | None:
        """Return this rank's part in a leg, None where it has none."""
        return self._ways.get((job, leg))

    def _agree(self) -> None:
        mine = digest(self.plan)
        found: list[str] = [mine] * dist.get_world_size()
        dist.all_gather_object(found, mine)
        if others := [rank for rank, it in enumerate(found) if it != found[0]]:
            raise ValueError(
                f"ranks {others} plan another optimizer step than rank 0; expected the same model, "
                "layout and settings on all"
            )


class _Work:
    """What one rank has in hands of a job, from its packing to its end."""

    def __init__(self, muon: ShardedMuon, number: int) -> None:
        self._muon, self._number, self._job = muon, number, muon.plan.jobs[number]
        rank = dist.get_rank()
        self._held = dict(held(muon.plan, self._job, rank=rank))
        self._owned = owned(self._job, rank)
        # Of units held: the update, then its result; of units owned: the whole matrix, likewise.
        self._parts: dict[int, Tensor] = {}
        self._wholes: dict[int, Tensor] = {}
        self._flight: Flight | None = None

    def do(self, kind: Kind) -> None:
        """Do one of the plan's steps."""
        match kind:
            case "pack":
                self._pack()
            case "gather":
                self._start("gather", self._from_parts)
            case "orthogonalize":
                self._orthogonalize()
            case "scatter":
                self._start("scatter", self._from_wholes)
            case "share":
                self._land_in_parts()
                self._start("share", self._from_parts)
            case "apply":
                self._land_in_parts()
                self._apply()

    def _pack(self) -> None:
        config, units = self._muon.config, self._muon.plan.units
        for unit, box in self._held.items():
            name = units[unit].parameter
            momentum = self._muon.part_of(name, box, momentum=True)
            update = update_of(self._muon.grad_of(name, box), momentum, config)
            self._parts[unit] = update.to(wire_dtype(config.orthogonalize), copy=True)

    def _orthogonalize(self) -> None:
        config, units = self._muon.config.orthogonalize, self._muon.plan.units
        for unit in self._owned:
            self._wholes[unit] = torch.empty(
                units[unit].shape, dtype=wire_dtype(config), device=self._muon.device
            )
            if unit in self._held:
                _inside(self._wholes[unit], self._held[unit], units[unit].box).copy_(
                    self._parts[unit]
                )
        for it, came in self._land():
            _inside(self._wholes[it.unit], it.box, units[it.unit].box).copy_(came)
        # The bits of a matrix are those of its own side: tall ones are not transposed.
        for shape in dict.fromkeys(units[unit].shape for unit in self._owned):
            alike = [unit for unit in self._owned if units[unit].shape == shape]
            done = orthogonalize(torch.stack([self._wholes[it] for it in alike]), config=config)
            self._wholes.update(zip(alike, done, strict=True))
            self._muon.counts["matrices"] += len(alike)
        self._parts = {
            unit: torch.empty_like(part, dtype=product_dtype(config))
            for unit, part in self._parts.items()
        }
        for unit in self._owned:
            if unit in self._held:
                own = _inside(self._wholes[unit], self._held[unit], units[unit].box)
                self._parts[unit].copy_(own)

    def _apply(self) -> None:
        muon = self._muon
        for unit, box in self._held.items():
            it = muon.plan.units[unit]
            settle(
                muon.part_of(it.parameter, box),
                muon.part_of(it.parameter, box, momentum=True),
                self._parts[unit],
                unit_shape=it.shape,
                lr=muon.param_groups[0]["lr"],
                config=muon.config,
            )

    def _start(self, leg: Leg, take: Callable[[Transfer], Tensor]) -> None:
        config = self._muon.config.orthogonalize
        way = self._muon.way(self._number, leg)
        if way is not None:
            dtype = wire_dtype(config) if leg == "gather" else product_dtype(config)
            self._flight = start(way, take, dtype=dtype)
            self._muon.counts["exchanges"] += 1
            self._muon.counts["bytes"] += self._flight.sent_N.nbytes

    def _land(self) -> list[tuple[Transfer, Tensor]]:
        flight, self._flight = self._flight, None
        return [] if flight is None else list(flight.land())

    def _land_in_parts(self) -> None:
        for it, came in self._land():
            _inside(self._parts[it.unit], it.box, self._held[it.unit]).copy_(came)

    def _from_parts(self, it: Transfer) -> Tensor:
        return _inside(self._parts[it.unit], it.box, self._held[it.unit])

    def _from_wholes(self, it: Transfer) -> Tensor:
        return _inside(self._wholes[it.unit], it.box, self._muon.plan.units[it.unit].box)


def _view(local: Tensor, box: Box, held_box: Box) -> Tensor:
    """Return the matrix [R, C] of a box in what a rank holds, of two dims or three."""
    (expert, _), (first, _) = box.experts, held_box.experts
    matrix = local[expert - first] if local.ndim > _MATRIX else local
    return _inside(matrix, box, held_box)


def _inside(matrix: Tensor, box: Box, outer: Box) -> Tensor:
    """Return the view of a box in a matrix that is another box's."""
    (a, b), (c, d) = box.rows, box.cols
    row, col = outer.rows[0], outer.cols[0]
    return matrix[a - row : b - row, c - col : d - col]


# Dims of what has no experts.
_MATRIX = 2
