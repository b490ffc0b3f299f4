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
from pipeline.index import package_index
from pipeline.sandbox.choose import probe
from pipeline.task.record import Reject
from pipeline.uv import InstallError, find_interpreter

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
    """Check sandbox back ends, interpreters, disk and the package index; fail if one is missing."""
    findings = [*_sandboxes(), *_interpreters(), _disk(), _index()]
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
    return [
        Finding(
            what=f"sandbox {it.name}",
            works=it.works,
            is_needed=True,
            detail=f"starts in {1000 * it.start_s:.0f} ms" if it.works else it.detail,
        )
        for it in probe()
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
    except InstallError as error:  # a broken shim on the search path
        return False, str(error)[:200]
    if isinstance(found, Reject):
        return False, found.detail
    return True, str(found.path)


def _disk() -> Finding:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    return Finding(
        what="disk",
        works=free >= MIN_FREE_BYTES and os.access(folder, os.W_OK),
        is_needed=True,
        detail=f"{free / 2**30:.1f} GiB free for {folder}",
    )


def _index() -> Finding:
    url = package_index()
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/pip/", timeout=20) as answer:  # noqa: S310
            works, detail = answer.status == 200, url  # noqa: PLR2004
    except (OSError, ValueError) as error:
        works, detail = False, f"{url}: {error}"
    return Finding(what="package index", works=works, is_needed=True, detail=detail)
