import doctest
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from tests.trainer.muon.memories import Array, Machine, part
from tests.trainer.muon.models import Model, dense, experts, planned, planned_on, split_experts
from trainer.muon import plan as plan_module
from trainer.muon.costs import LINKS, Cluster
from trainer.muon.cuts import Experts, Whole
from trainer.muon.jobs import LEGS, Plan, PlanOptions
from trainer.muon.layout import Shard, lay_out
from trainer.muon.plan import digest, make_plan, num_orthogonalized, plan_table, redone
from trainer.muon.traffic import bytes_moved
from trainer.muon.units import units_of


def work(matrix: Array) -> Array:
    """Stand in for orthogonalizing: exact, and each element depends on the whole matrix."""
    weights = np.arange(matrix.size).reshape(matrix.shape) + 1
    return matrix + (matrix * weights).sum()


def ran(plan: Plan, model: Model) -> tuple[Machine, dict[str, Array]]:
    """Return the machine after the plan, and what each parameter should be by then."""
    draw = np.random.default_rng(0)
    values, expected = {}, {}
    for name, (layout, units) in model.items():
        values[name] = draw.integers(-1000, 1000, layout.shape)
        expected[name] = values[name].copy()
        for unit in units:
            at = part(unit.box)
            expected[name][at] = work(values[name][at][0])[None]
    layouts = {name: layout for name, (layout, _) in model.items()}
    machine = Machine.holding(plan, values, layouts, work)
    machine.run()
    return machine, expected


@settings(max_examples=150, deadline=None)
@given(planned())
def test_each_holder_ends_with_its_part_of_what_one_process_would_have(
    case: tuple[Model, Plan],
) -> None:
    model, plan = case
    machine, expected = ran(plan, model)
    for memory in machine.memories.values():
        for name, it in memory.items():
            assert (it.values == expected[name][part(it.box)]).all()


@settings(max_examples=100, deadline=None)
@given(planned())
def test_a_unit_is_orthogonalized_once_or_once_a_copy_where_the_plan_says_so(
    case: tuple[Model, Plan],
) -> None:
    model, plan = case
    machine, _ = ran(plan, model)
    again = set(redone(plan))
    for unit, pattern in enumerate(plan.patterns):
        num_copies = plan.fragments[pattern].ranks.shape[1]
        assert machine.num_done[unit] == (num_copies if unit in again else 1)
        if plan.options.redo != "cheapest":
            assert (unit in again) == (plan.options.redo == "always" and num_copies > 1)
    assert machine.num_done.total() == num_orthogonalized(plan)


@settings(max_examples=100, deadline=None)
@given(planned())
def test_bytes_that_go_over_each_link_are_those_that_were_predicted(
    case: tuple[Model, Plan],
) -> None:
    model, plan = case
    machine, _ = ran(plan, model)
    predicted = bytes_moved(plan)
    for link in LINKS:
        for counted, known in zip(
            (machine.sent[link], machine.received[link]), predicted[link], strict=True
        ):
            assert [counted[rank] for rank in range(len(known))] == known.tolist()


@settings(max_examples=100, deadline=None)
@given(planned())
def test_each_job_does_its_steps_in_order_and_jobs_are_gathered_ahead_by_the_depth_at_most(
    case: tuple[Model, Plan],
) -> None:
    _, plan = case
    at: dict[tuple[str, int], int] = {
        (step.kind, step.job): place for place, step in enumerate(plan.steps)
    }
    assert len(at) == len(plan.steps)
    for number, job in enumerate(plan.jobs):
        gather, *back = LEGS[job.route] or ("pack",)
        kinds = ["pack", gather, "orthogonalize", *back, "apply"]
        places = [at[kind, number] for kind in dict.fromkeys(kinds)]
        assert all(one < next_one for one, next_one in pairwise(places))
    moved = [number for number, job in enumerate(plan.jobs) if job.route != "local"]
    for ahead, number in zip(moved[plan.options.depth + 1 :], moved, strict=False):
        assert at["orthogonalize", number] < at["gather", ahead]
    assert sorted(at["orthogonalize", number] for number in range(len(plan.jobs))) == [
        at["orthogonalize", number] for number in range(len(plan.jobs))
    ]


@settings(max_examples=50, deadline=None)
@given(planned())
def test_the_same_plan_is_made_whatever_the_order_of_what_it_is_made_of(
    case: tuple[Model, Plan],
) -> None:
    model, plan = case
    backwards = dict(reversed(model.items()))
    assert digest(planned_on(plan.cluster, backwards, plan.options)) == digest(plan)


def test_a_digest_tells_plans_apart_by_owner_order_and_layout() -> None:
    model = experts(num_experts=3, num_ranks=4)
    plan = planned_on(Cluster(num_ranks=4), model)
    job = plan.jobs[0]
    others = [
        replace(plan, steps=plan.steps[::-1]),
        replace(plan, jobs=(replace(job, owners=job.owners[::-1]), *plan.jobs[1:])),
        planned_on(Cluster(num_ranks=4, ranks_per_node=2), model),
        planned_on(Cluster(num_ranks=4), experts(num_experts=3, num_ranks=2)),
    ]
    assert len({digest(plan), *map(digest, others)}) == 5


def test_whole_experts_move_nothing() -> None:
    plan = planned_on(Cluster(num_ranks=4), experts(num_experts=8, num_ranks=4, num_layers=3))
    assert {job.route for job in plan.jobs} == {"local"}
    assert sum(int(side.sum()) for both in bytes_moved(plan).values() for side in both) == 0


def test_ranks_that_the_chunk_rule_leaves_without_experts_orthogonalize_those_of_others() -> None:
    model = experts(num_experts=6, num_ranks=8, num_layers=40)
    plan = planned_on(Cluster(num_ranks=8, flops_s=1e12), model)
    counts = Counter(owner for job in plan.jobs for (owner,) in job.owners)
    assert sorted(counts) == list(range(8))
    assert max(counts.values()) - min(counts.values()) <= 2


def test_an_expert_goes_to_no_other_rank_where_its_way_takes_longer_than_it_saves() -> None:
    model = experts(num_experts=6, num_ranks=8, num_layers=40)
    slow = Cluster(num_ranks=8, flops_s=1e15, nvlink_bytes_s=1e3, network_bytes_s=1e3)
    assert {job.route for job in planned_on(slow, model).jobs} == {"local"}


def test_ranks_that_share_an_expert_deal_out_its_layers_among_themselves() -> None:
    model = split_experts(num_experts=2, shared_by=4, num_layers=8)
    plan = planned_on(Cluster(num_ranks=8), model)
    for job in plan.jobs:
        for unit, (owner,) in zip(job.units, job.owners, strict=True):
            assert owner // 4 == plan.units[unit].box.experts[0]
    counts = Counter(owner for job in plan.jobs for (owner,) in job.owners)
    assert set(counts.values()) == {2}


def test_replicas_redo_what_costs_less_than_its_bytes_and_share_out_the_rest() -> None:
    # 23.7k operations a weight take as long as two bytes on this network: a head has 4k.
    cluster = Cluster(num_ranks=16, ranks_per_node=8)
    model = dense("head", (128, 512), mesh=(2, 8)) | dense("output", (7168, 8192), mesh=(2, 8))
    plan = planned_on(cluster, model)
    assert [plan.units[unit].parameter for unit in redone(plan)] == ["head"]
    within_node = Cluster(num_ranks=16, ranks_per_node=16)
    assert redone(planned_on(within_node, model)) == ()


def test_an_owner_sends_a_relayed_matrix_once_and_not_to_each_replica() -> None:
    cluster = Cluster(num_ranks=64)
    model = dense("output", (7168, 8192), mesh=(8, 8))
    size = 7168 * 8192 * 2
    relayed, direct = (
        bytes_moved(planned_on(cluster, model, PlanOptions(relay_s=relay_s)))["network"][0]
        for relay_s in (1e-3, 1.0)
    )
    assert direct.max() == 7 * size
    assert relayed.max() < 1.2 * size
    # All together have to send about as much as before.
    assert relayed.sum() < 1.2 * direct.sum()


def test_large_matrices_that_all_ranks_hold_go_to_as_many_nodes() -> None:
    model: Model = {}
    for number in range(4):
        model |= dense(f"output.{number}", (2048, 2048), mesh=(4, 8))
    plan = planned_on(Cluster(num_ranks=32), model)
    owners = [owner for job in plan.jobs for (owner,) in job.owners]
    assert sorted(owner // 8 for owner in owners) == [0, 1, 2, 3]


def test_a_job_has_units_of_one_shape_lying_or_standing_and_no_more_bytes_an_owner_than_asked() -> (
    None
):
    model = experts(num_experts=4, num_ranks=2, num_layers=5)
    tall = experts(num_experts=4, num_ranks=2, num_layers=5)
    model |= {
        f"tall.{name}": (
            lay_out(name, (4, 1024, 512), mesh=np.arange(2), placements=(Shard(dim=0),)),
            units_of(f"tall.{name}", (4, 1024, 512), Experts(cut=Whole())),
        )
        for name in tall
    }
    job_bytes = 3 * 512 * 1024 * 2
    plan = planned_on(Cluster(num_ranks=2), model, PlanOptions(job_bytes=job_bytes))
    assert {job.shape for job in plan.jobs} == {(512, 1024)}
    for job in plan.jobs:
        assert max(Counter(owner for (owner,) in job.owners).values()) <= 3
    assert len(plan.jobs) < 10


def test_the_table_counts_each_unit_once() -> None:
    model = experts(num_experts=8, num_ranks=4) | dense("output", (64, 64), mesh=(2, 2))
    plan = planned_on(Cluster(num_ranks=4), model, PlanOptions(redo="always"))
    rows = {row[0]: row for row in plan_table(plan)}
    assert rows["512 x 1024"][1:6] == ("local", 1, 8, 8, 1)
    assert rows["64 x 64"][1:5] == ("direct", 2, 1, 2)


def test_what_cannot_be_planned_is_refused() -> None:
    model = experts(num_experts=2, num_ranks=4)
    (layout, units), *_ = model.values()
    with pytest.raises(ValueError, match=r"layer\.0: is on rank 1, expected one below 1"):
        planned_on(Cluster(num_ranks=1), model)
    with pytest.raises(ValueError, match=r"layer\.0: has no layout"):
        make_plan({}, units, cluster=Cluster(num_ranks=4))
    with pytest.raises(ValueError, match="no unit to plan"):
        make_plan({"layer.0": layout}, [], cluster=Cluster(num_ranks=4))
    torn = replace(layout, pieces=layout.pieces[:1])
    with pytest.raises(ValueError, match="expected all of it"):
        make_plan({"layer.0": torn}, units, cluster=Cluster(num_ranks=4))


def test_the_examples_of_the_module_are_true() -> None:
    assert doctest.testmod(plan_module).failed == 0


def test_what_each_replica_does_for_itself_stays_with_it_however_idle_other_ranks_are() -> None:
    model: Model = {}
    for number in range(4):
        model |= dense(f"output.{number}", (2048, 2048), mesh=(2, 1))
    plan = planned_on(Cluster(num_ranks=4), model, PlanOptions(redo="always"))
    assert [owners for job in plan.jobs for owners in job.owners] == [(0, 1)] * 4
