"""`regrow doctor` says what works, whatever is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.pipeline.commands.conftest import Regrow


def test_this_machine_has_all_that_is_needed(regrow: Regrow):
    done = regrow("doctor", "--json")
    findings = json.loads(done.stdout)["findings"]
    missing = [it for it in findings if it["is_needed"] and not it["works"]]
    assert (done.returncode, missing) == (0, [])
    assert {"sandbox bubblewrap", "python 3.11", "disk", "package index"} <= {
        it["what"] for it in findings
    }


def test_what_is_missing_is_found_and_not_stumbled_over(tmp_path: Path):
    (tmp_path / "file").touch()
    # A pip that does not work hides which index it would ask.
    (tmp_path / "pip.py").write_text("raise ImportError")
    environ = {
        "PATH": "/nonexistent",
        "HOME": os.environ["HOME"],
        "PYTHONPATH": str(tmp_path),
        "REGROW_CACHE": str(tmp_path / "file" / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "doctor", "--json"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    findings = {it.pop("what"): it for it in json.loads(done.stdout)["findings"]}
    assert not any(findings[what]["works"] for what in ("git", "disk", "package index"))
    assert not findings["git"]["is_needed"]
    assert "PIP_INDEX_URL" in findings["package index"]["detail"]
