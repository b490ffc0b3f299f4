"""The records of a plan: which matrices are orthogonalized together, by whom, and in what order.

Letters of shapes: F fragments of a unit, R copies of it (replicas), M moves.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt

from trainer.muon.config import NewtonSchulzConfig, ProductDtype
from trainer.muon.costs import Cluster
from trainer.muon.units import Box, Unit
from trainer.settings import Settings

Ints = NDArray[np.int64]

# Of a unit: one rank that orthogonalizes it for all its copies, or one a copy where it is redone.
Owners = tuple[int, ...]
# How results come back. `local`: nothing moves at all. `direct`: an owner sends each holder its
# fragment. `relayed`: it sends each of the R holders of a fragment another R-th of it, and these
# send what they have to each other, so that no owner sends a matrix R times.
Route = Literal["local", "direct", "relayed"]
# An all-to-all of a job: fragments to owners, results to holders, slices between replicas.
Leg = Literal["gather", "scatter", "share"]
LEGS: dict[Route, tuple[Leg, ...]] = {
    "local": (),
    "direct": ("gather", "scatter"),
    "relayed": ("gather", "scatter", "share"),
}
Kind = Literal["pack", "gather", "orthogonalize", "scatter", "share", "apply"]
_BYTES: dict[ProductDtype, int] = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8}
# Whether replicas orthogonalize a matrix in each copy: where that is cheaper than to send the
# result, always, or never.
Redo = Literal["cheapest", "always", "never"]


class PlanOptions(Settings):
    """What a plan depends on besides the model and the cluster."""

    # What the products of a matrix cost.
    orthogonalize: NewtonSchulzConfig = NewtonSchulzConfig()
    redo: Redo = "cheapest"
    # Of whole matrices that one rank has of one job.
    job_bytes: PositiveInt = 2**27
    # Of what a rank gets of one relayed job.
    relay_bytes: PositiveInt = 2**29
    # Jobs whose fragments are on their way or there, before the one that is orthogonalized.
    depth: PositiveInt = 4
    # From this time on that its owner would send it to all replicas, a matrix is relayed.
    relay_s: PositiveFloat = 2e-3

    @property
    def wire_bytes(self) -> int:
        """Bytes of an element on the wire: those of the products' dtype, which loses nothing."""
        return _BYTES[self.orthogonalize.dtype]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fragments:
    """Who holds what of a unit."""

    # [F, 6]: start and end of experts, rows and columns, in the parameter; they cover the unit.
    boxes: Ints
    # [F, R]: who holds each; a column is a whole copy.
    ranks: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Units of one shape, orthogonalized as one batch on each of their owners.

    Example: `Job(shape=(64, 256), route="direct", units=(0, 1), owners=((2,), (5,)))`.
    """

    # Of each unit, the short side first: units with more rows than columns are transposed.
    shape: tuple[int, int]
    route: Route
    # Numbers in `Plan.units`, ascending. All have as many copies.
    units: tuple[int, ...]
    # Of each unit.
    owners: tuple[Owners, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that all ranks do with a job."""

    kind: Kind
    # Its number in `Plan.jobs`.
    job: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """All that the ranks of a cluster do in one optimizer step; `trainer.muon.plan` says how."""

    cluster: Cluster
    options: PlanOptions
    units: tuple[Unit, ...]
    # Of each unit, a number in `fragments`; layers that are alike share theirs.
    patterns: tuple[int, ...]
    fragments: tuple[Fragments, ...]
    # In the order in which they are orthogonalized.
    jobs: tuple[Job, ...]
    # In the order in which each rank does them, whatever its part in them is.
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What one rank sends to another, or gets from it, in one leg of a job."""

    peer: int
    # Its number in `Plan.units`.
    unit: int
    # In the parameter.
    box: Box
