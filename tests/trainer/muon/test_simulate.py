from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tests.trainer.muon.models import Model, dense, experts, planned, planned_on, split_experts
from trainer.muon.bound import bound
from trainer.muon.costs import LINKS, Cluster, link_ns
from trainer.muon.jobs import Plan, PlanOptions
from trainer.muon.plan import make_plan
from trainer.muon.simulate import simulate
from trainer.muon.traffic import bytes_moved


@settings(max_examples=100, deadline=None)
@given(planned())
def test_no_plan_is_done_before_the_bound_or_before_a_rank_has_done_its_part(
    case: tuple[Model, Plan],
) -> None:
    _, plan = case
    timing = simulate(plan)
    least = bound(plan)
    # Times of parts are rounded to a nanosecond each.
    slack_s = 1e-9 * (len(plan.steps) + 1) * plan.cluster.num_ranks
    assert timing.makespan_s >= least.bound_s - slack_s
    assert (timing.done_ns >= timing.product_ns + timing.memory_ns).all()
    for link in LINKS:
        assert (timing.done_ns >= timing.link_ns[link] * (timing.link_ns[link] > 0)).all()


@settings(max_examples=50, deadline=None)
@given(planned())
def test_a_link_is_busy_for_at_least_the_bytes_that_the_plan_sends_over_it(
    case: tuple[Model, Plan],
) -> None:
    _, plan = case
    timing = simulate(plan)
    for link, both in bytes_moved(plan).items():
        for num_bytes in both:
            least = link_ns(num_bytes, link, plan.cluster)
            assert (timing.link_ns[link] >= least - len(plan.steps)).all()


def test_what_moves_nothing_takes_as_long_as_the_arithmetic() -> None:
    plan = planned_on(Cluster(num_ranks=4), experts(num_experts=8, num_ranks=4, num_layers=3))
    timing = simulate(plan)
    busy = timing.product_ns + timing.memory_ns
    assert timing.done_ns.tolist() == busy.tolist()
    assert timing.makespan_s == pytest.approx(bound(plan).bound_s, abs=1e-8)


def test_other_work_of_a_rank_is_added_to_what_it_does() -> None:
    plan = planned_on(Cluster(num_ranks=4), experts(num_experts=8, num_ranks=4))
    filler_N = np.array([0, 5_000_000, 0, 0])
    took = simulate(plan, filler_ns=filler_N).done_ns - simulate(plan).done_ns
    assert took.tolist() == filler_N.tolist()


def test_jobs_that_are_gathered_ahead_hide_their_way_behind_the_arithmetic() -> None:
    model = split_experts(num_experts=2, shared_by=4, num_layers=64)
    cluster = Cluster(num_ranks=8, ranks_per_node=1, flops_s=5e12, network_bytes_s=2e9)
    options = PlanOptions(job_bytes=1)
    plan = planned_on(cluster, model, options)
    timing, least = simulate(plan), bound(plan)
    network_s = int(timing.link_ns["network"].max()) / 1e9
    assert network_s > 0.4 * least.bound_s
    assert timing.makespan_s < 1.15 * least.bound_s
    # One after the other, as without anything in flight.
    serial = make_serial(plan)
    assert simulate(serial).makespan_s > 1.3 * least.bound_s


def make_serial(plan: Plan) -> Plan:
    """Let each job end before the next one starts."""
    kinds = ("pack", "gather", "orthogonalize", "scatter", "share", "apply")
    steps = sorted(plan.steps, key=lambda step: (step.job, kinds.index(step.kind)))
    options = plan.options.model_copy(update={"depth": 0})
    return replace(plan, steps=tuple(steps), options=options)


def test_replicas_that_repeat_large_dense_matrices_lose_what_sharing_them_out_saves() -> None:
    model: Model = {}
    for number in range(16):
        model |= dense(f"output.{number}", (2048, 4096), mesh=(4, 4))
    cluster = Cluster(num_ranks=16, ranks_per_node=4)
    planned_s, redone_s = (
        simulate(planned_on(cluster, model, PlanOptions(redo=redo))).makespan_s
        for redo in ("cheapest", "always")
    )
    assert redone_s > 1.5 * planned_s


def test_a_rank_with_one_huge_matrix_does_not_keep_those_that_share_experts_with_it() -> None:
    model = split_experts(num_experts=2, shared_by=4, num_layers=256)
    model |= dense("output", (2048, 2048), mesh=(1, 8))
    cluster = Cluster(num_ranks=8, collective_s=0, message_s=0)
    plan = planned_on(cluster, model, PlanOptions(job_bytes=2**22))
    assert simulate(plan).makespan_s < 1.05 * bound(plan).bound_s


def test_a_plan_for_a_faster_network_is_done_sooner() -> None:
    model = split_experts(num_experts=2, shared_by=4, num_layers=16)
    layouts = {name: layout for name, (layout, _) in model.items()}
    units = [unit for _, units in model.values() for unit in units]
    times = [
        simulate(
            make_plan(
                layouts,
                units,
                cluster=Cluster(num_ranks=8, ranks_per_node=1, network_bytes_s=bytes_s),
            )
        ).makespan_s
        for bytes_s in (1e9, 4e9)
    ]
    assert times[0] > 3 * times[1]
