"""Scan what all solvers of a Repo see besides the tree, once: environment, interpreter, system."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pipeline.leaks.budget import Budget
from pipeline.leaks.match import Matcher
from pipeline.leaks.prints import SymbolPrints
from pipeline.leaks.scan import Scanned, scan_roots
from pipeline.leaks.survey import files_that_define, machine_folder, survey_system
from pipeline.leaks.verdicts import Verdicts
from pipeline.leaks.walk import Root

# What one scan may use.
BUDGET = Budget()
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
    ours, theirs = scan(own), scan(related)
    return Scanned(
        places=ours.places + theirs.places,
        # What the system has of its own was there before the Repo.
        unread=ours.unread,
        num_files=ours.num_files + theirs.num_files,
        num_bytes=ours.num_bytes + theirs.num_bytes,
    )


def verdicts_in(cache: Path) -> Verdicts:
    """Return the verdicts that runs share."""
    return Verdicts(cache / "verdicts")
