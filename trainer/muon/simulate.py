"""Carry out a plan on a clock alone: when would each rank be done?

A rank has queues that run side by side, each in the order of the plan's steps: one of products, one
that packs, one that applies, one of collectives, and another of collectives for what relayed jobs
send back. Packing and applying take their time from the products. A collective starts on the ranks
that hear of each other in it when all of them have come to it, and ends when the last is done; two
of them on one link run one after another. Letters of shapes: N ranks.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from trainer.muon.costs import APPLY_BYTES, LINKS, PACK_BYTES, Link, latency_ns, memory_ns
from trainer.muon.fragments import numel
from trainer.muon.jobs import Ints, Leg, Plan, Step
from trainer.muon.moves import held_by_all
from trainer.muon.owners import units_ns
from trainer.muon.traffic import Traffic, leg_traffic, traffic_ns

_Queue = Literal["pack", "multiply", "apply", "exchange", "spread"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timing:
    """How long a step of the optimizer takes."""

    # Until the last rank is done.
    makespan_s: float
    # Of each rank, [N]: until it is done, and in what it was busy meanwhile.
    done_ns: Ints
    product_ns: Ints
    memory_ns: Ints
    # Of each link, [N]: the bytes alone.
    link_ns: dict[Link, Ints]


def simulate(plan: Plan, *, filler_ns: Ints | None = None) -> Timing:
    """Return when each rank is done with a plan.

    `filler_ns`, [N], is other arithmetic, such as AdamW's, that each rank does while the last
    results are on their way.
    """
    run = _Run(plan)
    last = max(at for at, step in enumerate(plan.steps) if step.kind == "orthogonalize")
    for at, step in enumerate(plan.steps):
        run.do(step)
        if at == last and filler_ns is not None:
            run.touch("apply", filler_ns, ready_N=np.zeros_like(filler_ns))
    return Timing(
        makespan_s=int(run.done_N.max()) / 1e9,
        done_ns=run.done_N,
        product_ns=run.product_N,
        memory_ns=run.memory_N,
        link_ns=run.carried,
    )


class _Run:
    """How far each rank has come; all times in nanoseconds, [N]."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._costs = units_ns(plan.units, cluster=plan.cluster, options=plan.options)
        zeros = np.zeros(plan.cluster.num_ranks, dtype=np.int64)
        self._zeros = zeros
        # When each queue and each link is free.
        self._queues: dict[_Queue, Ints] = dict.fromkeys(get_args(_Queue), zeros)
        self._links: dict[Link, Ints] = dict.fromkeys(LINKS, zeros)
        # When what the next step of each job needs is there, and when its owners are done with it.
        self._ready: dict[int, Ints] = {}
        self._orthogonalized: dict[int, Ints] = {}
        self._before = _slots(plan)
        # How long each was busy.
        self.product_N, self.memory_N = zeros, zeros
        self.carried: dict[Link, Ints] = dict.fromkeys(LINKS, zeros)

    @property
    def done_N(self) -> Ints:
        """When each rank is done with all so far."""
        return np.max(list(self._queues.values()), axis=0)

    def do(self, step: Step) -> None:
        """Do one step on all ranks."""
        match step.kind:
            case "pack":
                took_N = self._memory_ns(step.job, PACK_BYTES)
                self._ready[step.job] = self.touch("pack", took_N, ready_N=self._zeros)
            case "orthogonalize":
                self._multiply(step.job)
            case "apply":
                took_N = self._memory_ns(step.job, APPLY_BYTES)
                self.touch("apply", took_N, ready_N=self._ready[step.job])
            case leg:
                self._move(step.job, leg)

    def touch(self, queue: _Queue, took_N: Ints, *, ready_N: Ints) -> Ints:
        """Read and write memory for a time, which products go on later by; return the end."""
        start_N = np.maximum(self._queues[queue], ready_N)
        end_N = np.where(took_N > 0, start_N + took_N, self._queues[queue])
        self._queues[queue] = end_N
        self._queues["multiply"] = self._queues["multiply"] + took_N
        self.memory_N = self.memory_N + took_N
        return end_N

    def _memory_ns(self, number: int, bytes_each: int) -> Ints:
        _, boxes_H6, ranks_HR = held_by_all(self._plan, self._plan.jobs[number])
        weights_N = np.zeros_like(self._zeros)
        np.add.at(weights_N, ranks_HR, numel(boxes_H6)[:, None])
        return memory_ns(weights_N * bytes_each, self._plan.cluster)

    def _multiply(self, number: int) -> None:
        job = self._plan.jobs[number]
        took_N = np.zeros_like(self._zeros)
        costs = np.array([self._costs[unit] for unit in job.units])
        np.add.at(took_N, np.array(job.owners), costs[:, None])
        start_N = np.maximum(self._queues["multiply"], self._ready[number])
        end_N = np.where(took_N > 0, start_N + took_N, self._queues["multiply"])
        self._queues["multiply"] = end_N
        self._orthogonalized[number] = np.where(took_N > 0, end_N, 0)
        # Who owns nothing has nothing to send either: only to get.
        self._ready[number] = self._orthogonalized[number]
        self.product_N = self.product_N + took_N

    def _move(self, number: int, leg: Leg) -> None:
        cluster, job = self._plan.cluster, self._plan.jobs[number]
        traffic = leg_traffic(self._plan, job, leg=leg)
        is_back = job.route == "relayed" and leg != "gather"
        queue: _Queue = "spread" if is_back else "exchange"
        ready_N = self._ready[number]
        if leg == "gather" and number in self._before:
            # What an owner gets goes into the buffers of an earlier job.
            is_owner_N = np.isin(np.arange(len(ready_N)), np.array(job.owners))
            emptied_N = self._orthogonalized[self._before[number]]
            ready_N = np.where(is_owner_N, np.maximum(ready_N, emptied_N), ready_N)
        start_N = np.maximum(ready_N, self._queues[queue])
        busy = {link: traffic_ns(traffic, link, cluster) for link in LINKS}
        for link in LINKS:
            start_N = np.where(busy[link] > 0, np.maximum(start_N, self._links[link]), start_N)
        start_N = _latest(start_N, traffic)
        took_N = np.maximum(*busy.values()) + latency_ns(traffic.num_peers, cluster)
        end_N = _latest(start_N + took_N, traffic)
        is_there_N = traffic.num_peers > 0
        self._queues[queue] = np.where(is_there_N, end_N, self._queues[queue])
        self._ready[number] = np.where(is_there_N, end_N, ready_N)
        for link in LINKS:
            used_N = start_N + busy[link]
            self._links[link] = np.where(busy[link] > 0, used_N, self._links[link])
            self.carried[link] = self.carried[link] + busy[link]


def _slots(plan: Plan) -> dict[int, int]:
    """Return for each job that moves the earlier one whose buffers it gathers into."""
    moved = [number for number, job in enumerate(plan.jobs) if job.route != "local"]
    return dict(zip(moved[plan.options.depth + 1 :], moved, strict=False))


def _latest(times_N: Ints, traffic: Traffic) -> Ints:
    """Return for each rank the latest time of those that hear of each other."""
    latest_N = np.zeros_like(times_N)
    np.maximum.at(latest_N, traffic.circles, times_N)
    return latest_N[traffic.circles]
