import json
from pathlib import Path

import pytest

from tests.pipeline.commands.conftest import Regrow

# What also holds of one task of one library.
HOLDING = {
    "quickstart": {
        "wall seconds of generate, empty cache",
        "gold patches that solve, verify 1",
        "gold patches that solve, verify 2",
        "empty patches that solve, verify 1",
        "empty patches that solve, verify 2",
    },
    "libraries": {
        "share of libraries without tasks whose rejects say why",
        "share of tried candidates that validate",
    },
    "repeat": {
        "share of files with the same bytes, once more",
        "share of files with the same bytes, one job",
        "share of files with the same bytes, plain loop",
        "share of files with the same bytes, killed three times",
    },
}


@pytest.mark.parametrize("name", HOLDING)
def test_a_quick_bench_measures_its_claims(name: str, regrow: Regrow, tmp_path: Path):
    done = regrow("bench", name, "--quick", "--json", "--keep", tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["bench"] == name
    assert report["table"]
    holding = {claim["claim"] for claim in report["claims"] if claim["holds"]}
    assert holding >= HOLDING[name], report["claims"]
