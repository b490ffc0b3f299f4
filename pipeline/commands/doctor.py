"""`regrow doctor`: what works on this machine."""

import os
import shutil
import sys
import urllib.request
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from pipeline.cache import cache_folder
from pipeline.commands.say import OUT, print_json
from pipeline.commands.tables import table
from pipeline.index import UNREACHABLE, IndexUnreachableError, package_index
from pipeline.sandbox.choose import probe
from pipeline.task.reject import Reject
from pipeline.uv import find_interpreter

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MIN_FREE_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Example: `Finding(what="sandbox bubblewrap", works=True, is_needed=True, detail="…")`.
    """

    what: str
    works: bool
    # Nothing goes without it.
    is_needed: bool
    detail: str


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check sandbox, interpreters, git, disk and the package index; fail if one is missing."""
    findings = [*_sandboxes(), *_interpreters(), _git(), _disk(), _index()]
    if json:
        print_json({"findings": [asdict(it) for it in findings]})
    else:
        rows = ((_word(it), it.what, it.detail) for it in findings)
        OUT.print(table("", ("", "what", "detail"), rows))
    if any(it.is_needed and not it.works for it in findings):
        raise typer.Exit(1)


def _word(finding: Finding) -> str:
    if finding.works:
        return "ok"
    return "MISSING" if finding.is_needed else "-"


def _sandboxes() -> list[Finding]:
    probes = probe()
    # One will do.
    is_needed = not any(it.works for it in probes)
    return [
        Finding(
            what=f"sandbox {it.name}",
            works=it.works,
            is_needed=is_needed,
            detail=f"starts in {1000 * it.start_s:.0f} ms" if it.works else it.detail,
        )
        for it in probes
    ]


def _interpreters() -> list[Finding]:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    findings = []
    for version in PYTHONS:
        works, detail = _find(version)
        findings.append(
            Finding(what=f"python {version}", works=works, is_needed=version == own, detail=detail)
        )
    return findings


def _find(version: str) -> tuple[bool, str]:
    try:
        found = find_interpreter(version, cache=cache_folder())
    except OSError as error:  # a broken shim on the search path, or a cache that is no folder
        return False, str(error)[:200]
    if isinstance(found, Reject):
        return False, found.detail
    return True, str(found.path)


def _git() -> Finding:
    found = shutil.which("git")
    detail = found or "not on the search path; only repositories that come from git need it"
    return Finding(what="git", works=found is not None, is_needed=False, detail=detail)


def _disk() -> Finding:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        works, detail = False, f"no cache folder: {error}"
    else:
        works = free >= MIN_FREE_BYTES and os.access(folder, os.W_OK)
        detail = f"{free / 2**30:.1f} GiB free for {folder}"
    return Finding(what="disk", works=works, is_needed=True, detail=detail)


def _index() -> Finding:
    url = "pip"
    try:
        url = package_index()
        with urllib.request.urlopen(f"{url.rstrip('/')}/pip/", timeout=20) as answer:  # noqa: S310
            works, detail = answer.status == 200, url  # noqa: PLR2004
    except (*UNREACHABLE, IndexUnreachableError) as error:
        works, detail = False, f"{url}: {error}"
    return Finding(what="package index", works=works, is_needed=True, detail=detail)
