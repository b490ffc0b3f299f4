import numpy as np
import pytest
from pydantic import ValidationError

from trainer.muon.costs import Cluster, latency_ns, link_ns, memory_ns, node_of, product_ns

CLUSTER = Cluster(
    num_ranks=16,
    ranks_per_node=4,
    flops_s=1e12,
    nvlink_bytes_s=4e9,
    network_bytes_s=1e9,
    hbm_bytes_s=2e9,
    collective_s=1e-6,
    message_s=1e-7,
)


def test_times_are_the_amount_by_the_rate() -> None:
    sizes = np.array([0, 8000])
    assert product_ns(3_000_000, CLUSTER) == 3000
    assert memory_ns(sizes, CLUSTER).tolist() == [0, 4000]
    assert link_ns(sizes, "nvlink", CLUSTER).tolist() == [0, 2000]
    assert link_ns(sizes, "network", CLUSTER).tolist() == [0, 8000]


def test_a_collective_costs_a_rank_more_with_more_peers_and_nothing_with_none() -> None:
    assert latency_ns(np.array([0, 1, 5]), CLUSTER).tolist() == [0, 1100, 1500]


def test_neighbours_are_in_one_node() -> None:
    assert node_of(np.array([0, 3, 4, 15]), CLUSTER).tolist() == [0, 0, 1, 3]


def test_a_cluster_without_ranks_or_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="num_ranks"):
        Cluster(num_ranks=0)
    with pytest.raises(ValidationError, match="gpus"):
        Cluster.model_validate({"num_ranks": 2, "gpus": 2})
