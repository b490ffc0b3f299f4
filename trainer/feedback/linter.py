"""Have ruff look at a text; no code of it is run, and no settings of its repository count."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

TIMEOUT_S = 20.0
# What a repository's own Python takes is not known here: no syntax is too new.
NEWEST = "py314"
# Faults by any convention; what a formatter or a taste decides is left to repositories.
RULES = ("E711", "E712", "E713", "E714", "E721", "E722", "F401", "F811", "F821", "F841", "W605")
NO_SYNTAX = "invalid-syntax"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that a line of a file breaks."""

    # `F841`, or `invalid-syntax`.
    rule: str
    message: str
    # From 1.
    line: int


def find_ruff() -> str:
    """Return where ruff is: beside this interpreter, or on the path; empty where it is not."""
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.is_file() else shutil.which("ruff") or ""


@lru_cache(maxsize=512)
def violations(text: str, *, name: str) -> tuple[Violation, ...] | None:
    """Return what ruff finds in a text that is called `name`; None where it cannot tell."""
    ruff = find_ruff()
    if not ruff:
        return None
    options = ("--isolated", "--no-cache", "--output-format", "json", "--target-version", NEWEST)
    command = [ruff, "check", *options, "--select", ",".join(RULES), "--stdin-filename", name, "-"]
    try:
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return tuple(map(_violation, json.loads(done.stdout)))
    except (OSError, ValueError, LookupError, TypeError, subprocess.TimeoutExpired):
        return None


def _violation(entry: dict[str, Any]) -> Violation:
    line = int(entry["location"]["row"])
    return Violation(rule=entry["code"] or NO_SYNTAX, message=entry["message"], line=line)
