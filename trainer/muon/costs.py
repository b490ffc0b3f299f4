"""Say how long a cluster takes for what an optimizer step is made of.

All times are whole nanoseconds: sums of them are the same on every machine, whatever the order,
so that ranks which plan apart plan alike.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from trainer.settings import Settings

# How two ranks are connected: within a node, or between nodes.
Link = Literal["nvlink", "network"]
LINKS: tuple[Link, ...] = ("nvlink", "network")

# Bytes of memory a weight is worth before its matrix is orthogonalized: the gradient is read
# (4), the momentum read and written (8), and the sum of both written in bf16 (2).
PACK_BYTES = 14
# And after: what came back is read (2), the weight read and written in fp32 (8) and in bf16 (2).
APPLY_BYTES = 12
# AdamW: gradient read, weight and both moments read and written in fp32, weight in bf16.
ADAMW_BYTES = 30

Counts = NDArray[np.int64]


class Cluster(Settings):
    """Ranks, one a GPU, and what they reach; the defaults are an H100 with a 400 Gb/s card each.

    Example: `Cluster(num_ranks=512)`, or with GB200s `Cluster(num_ranks=256, ranks_per_node=64,
    flops_s=1500e12, nvlink_bytes_s=900e9, hbm_bytes_s=8e12)`.
    """

    num_ranks: PositiveInt
    # Ranks i * ranks_per_node up to the next are a node.
    ranks_per_node: PositiveInt = 8
    # Of the products of one rank: 0.6 of what the data sheet says for dense bf16.
    flops_s: PositiveFloat = 593e12
    # Per rank, each way; both ways at once.
    nvlink_bytes_s: PositiveFloat = 450e9
    network_bytes_s: PositiveFloat = 50e9
    # Of the memory of one rank.
    hbm_bytes_s: PositiveFloat = 3.35e12
    # What a collective costs before its first byte.
    collective_s: float = Field(default=30e-6, ge=0)
    # What it costs for each peer, besides.
    message_s: float = Field(default=2e-6, ge=0)


def node_of(ranks: Counts, cluster: Cluster) -> Counts:
    """Return the node that each rank is in."""
    return ranks // cluster.ranks_per_node


def product_ns(flops: int, cluster: Cluster) -> int:
    """Return how long a rank takes for this many floating-point operations of products."""
    return round(flops / cluster.flops_s * 1e9)


def memory_ns(num_bytes: Counts, cluster: Cluster) -> Counts:
    """Return how long a rank takes to read and write this many bytes of its own memory."""
    return _rounded(num_bytes, cluster.hbm_bytes_s)


def link_ns(num_bytes: Counts, link: Link, cluster: Cluster) -> Counts:
    """Return how long a rank's end of a link is busy with this many bytes in one direction."""
    rates = {"nvlink": cluster.nvlink_bytes_s, "network": cluster.network_bytes_s}
    return _rounded(num_bytes, rates[link])


def latency_ns(num_peers: Counts, cluster: Cluster) -> Counts:
    """Return what a collective costs a rank besides its bytes; nothing with nobody."""
    cost = np.rint((cluster.collective_s + cluster.message_s * num_peers) * 1e9).astype(np.int64)
    return np.where(num_peers > 0, cost, 0)


def _rounded(num_bytes: Counts, bytes_s: float) -> Counts:
    return np.rint(num_bytes / bytes_s * 1e9).astype(np.int64)
