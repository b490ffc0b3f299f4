"""Have every Task of a Repo judged by one gate: what all of them see is looked at once."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock

from pipeline.desk import Folders
from pipeline.images import docker_behind, run_mounts
from pipeline.leaks.base import BUDGET, join_scans, scan_base, verdicts_in, without_own_gaps
from pipeline.leaks.gate import Gate, package_names
from pipeline.leaks.image import scan_image
from pipeline.leaks.match import Matcher
from pipeline.leaks.prints import snapshot_prints
from pipeline.leaks.roots import roots_of_job
from pipeline.leaks.scan import Scanned, scan_roots
from pipeline.leaks.symbol import SymbolPrints
from pipeline.leaks.walk import Root
from pipeline.probe.fetches import Reached, Targets, probe_fetches
from pipeline.sandbox.docker.loading import saved_image
from pipeline.sandbox.docker.sandbox import Docker
from pipeline.sandbox.protocol import Job
from pipeline.task.certificate import Certificate, Finding
from pipeline.task.grade import Desk
from pipeline.task.record import Task
from pipeline.task.reject import Reject
from pipeline.task.suite import BYTECODE, ENVIRONMENT, TREE
from pipeline.task.tree import read_tree

# Where that is what was made for the Repo.
OWN = (ENVIRONMENT, BYTECODE)
# Gates that are kept: one for each Repo at work.
MAX_GATES = 4
_OPENING = Lock()
# What each desk's solvers can fetch: nothing, or no Task of theirs is one.
_FETCHED: dict[Desk, tuple[Finding, ...]] = {}


def certify(task: Task, *, desk: Desk, folders: Folders) -> Certificate:
    """Scan all that a solver of a Task sees, and try what it could fetch.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: the machine failed.
    """
    gate = open_gate(desk, folders)
    fetched = _try_fetches(task, desk=desk, folders=folders)
    certificate = gate.certify(task)
    if not fetched:
        return certificate
    return replace(certificate, verdict="leaks", findings=(*fetched, *certificate.findings))


def refuse_leaks(certificate: Certificate) -> Reject | None:
    """Return why a Task is none, if its answer can be read or nobody can tell."""
    if certificate.verdict == "clean":
        return None
    if certificate.verdict == "unread":
        detail = f"not all could be scanned: {certificate.unread[0]}"
        return Reject(stage="leaks", reason="unread", detail=detail)
    worst = certificate.findings[0]
    place = " ".join((worst.path, *worst.decoders))
    if worst.channel == "network":
        return Reject(stage="leaks", reason="fetchable", detail=place)
    reason = "body" if "body" in worst.parts else "signature"
    return Reject(stage="leaks", reason=reason, detail=f"{worst.symbol} in {place}")


def open_gate(desk: Desk, folders: Folders) -> Gate:
    """Return what the Tasks of a desk's Repo are judged by; a tree never changes in its place."""
    with _OPENING:
        return _open(desk, folders)


@lru_cache(maxsize=MAX_GATES)
def _open(desk: Desk, folders: Folders) -> Gate:
    snapshot = read_tree(desk.tree)
    prints = snapshot_prints(snapshot)
    docker = docker_behind(desk.sandbox)
    scan = _scan_view if docker is None else partial(_scan_image, docker=docker)
    rest = _scan_rest(desk.tree, snapshot, prints, cache=folders.cache)
    return Gate(
        snapshot=snapshot,
        matcher=Matcher(prints),
        base=join_scans(scan(desk, prints, cache=folders.cache), rest),
        bytecode=desk.bench.bytecode / "tree",
        verdicts=verdicts_in(folders.cache),
        packages=package_names(snapshot),
    )


def _scan_rest(
    tree: Path, snapshot: Mapping[str, bytes], prints: Sequence[SymbolPrints], *, cache: Path
) -> Scanned:
    """Scan what lies in the tree and is no file of the Snapshot: caches, bytecode, history."""
    rest = Root(folder=tree, target=TREE, masked=tuple(snapshot))
    return scan_roots([rest], matcher=Matcher(prints), verdicts=verdicts_in(cache), budget=BUDGET)


def _scan_view(desk: Desk, prints: Sequence[SymbolPrints], *, cache: Path) -> Scanned:
    """Scan what jobs see of this machine, but for the tree and its bytecode."""
    mounts = tuple(it for it in run_mounts(desk) if it.target != f"{BYTECODE}{TREE}")
    roots = roots_of_job(Job(command=("sh",), mounts=mounts))
    own = [it for it in roots if it.target.startswith(OWN)]
    system = [it for it in roots if it not in own]
    return scan_base(own, system=system, prints=prints, cache=cache)


def _scan_image(
    desk: Desk, prints: Sequence[SymbolPrints], *, cache: Path, docker: Docker
) -> Scanned:
    """Scan all layers of the image that jobs run in."""

    def scan() -> Scanned:
        image = docker.bake(run_mounts(desk)).image
        with tempfile.NamedTemporaryFile() as file:
            file.writelines(saved_image(docker.engine, image))
            file.flush()
            return scan_image(
                Path(file.name),
                matcher=Matcher(prints),
                verdicts=verdicts_in(cache),
                budget=BUDGET,
            )

    scanned = docker.patiently(scan)
    own = tuple(it for it in scanned.unread if it.path.startswith(OWN))
    return replace(scanned, unread=own + without_own_gaps(scanned).unread)


def _try_fetches(task: Task, *, desk: Desk, folders: Folders) -> tuple[Finding, ...]:
    """Try the fetches once for all Tasks that see the same."""
    with _OPENING:
        if desk not in _FETCHED:
            probed = probe_fetches(task, desk=desk, targets=Targets(index=folders.index))
            _FETCHED[desk] = tuple(map(_as_finding, probed.reached))
        return _FETCHED[desk]


def _as_finding(reached: Reached) -> Finding:
    return Finding(
        channel="network",
        path=f"{reached.way} {reached.target}: {reached.detail}",
        decoders=(),
        symbol="",
        parts=("body",),
        share=0.0,
        excerpt="",
        blocks=True,
        rule="something can be fetched",
    )
