"""Scan what all solvers of a Repo see besides the tree, once: environment, interpreter, system."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipeline.leaks.budget import Budget, Why
from pipeline.leaks.match import Matcher
from pipeline.leaks.prints import SymbolPrints
from pipeline.leaks.scan import Scanned, scan_roots
from pipeline.leaks.survey import files_that_define, machine_folder, survey_system
from pipeline.leaks.verdicts import Verdicts
from pipeline.leaks.walk import Root

# What one scan may use.
BUDGET = Budget()
# Why a scan ends before it has seen everything.
ENDED: frozenset[Why] = frozenset({"time", "too many files"})
# A name that tells less is anybody's.
MIN_NAME_BITS = 4.0


def scan_base(
    own: Sequence[Root], *, system: Sequence[Root], prints: Sequence[SymbolPrints], cache: Path
) -> Scanned:
    """Scan what is the same for all Tasks of a Repo.

    What was made for the Repo is scanned whole. The system is large, and the same for all Repos:
    what its files define is found out once a machine, and a file is scanned that defines a name
    which the Snapshot defines too, unless that is anybody's.

    Args:
        own: what was made for the Repo.
        system: everything else.
        prints: of the Snapshot.
        cache: folder of what runs share.
    """
    names = frozenset(
        it.name for it in prints if max(it.names.values(), default=0) >= MIN_NAME_BITS
    )
    related = files_that_define(
        names, survey_system(tuple(system), folder=machine_folder(cache)), system=system
    )
    scan = partial(scan_roots, matcher=Matcher(prints), verdicts=verdicts_in(cache), budget=BUDGET)
    return join_scans(scan(own), without_own_gaps(scan(related)))


def without_own_gaps(scanned: Scanned) -> Scanned:
    """Drop what could not be read of a system: it was there before the Repo, broken or not.

    Where the scan did not get to all of it, that stays.
    """
    return replace(scanned, unread=tuple(it for it in scanned.unread if it.why in ENDED))


def join_scans(one: Scanned, other: Scanned) -> Scanned:
    """Return what two scans came to together."""
    return Scanned(
        places=one.places + other.places,
        unread=one.unread + other.unread,
        num_files=one.num_files + other.num_files,
        num_bytes=one.num_bytes + other.num_bytes,
    )


def verdicts_in(cache: Path) -> Verdicts:
    """Return the verdicts that runs share."""
    return Verdicts(cache / "verdicts")
