import json

from tests.pipeline.commands.conftest import Regrow


def test_this_machine_has_all_that_is_needed(regrow: Regrow):
    done = regrow("doctor", "--json")
    findings = json.loads(done.stdout)["findings"]
    missing = [it for it in findings if it["is_needed"] and not it["works"]]
    assert (done.returncode, missing) == (0, [])
    assert {"sandbox bubblewrap", "python 3.11", "disk", "package index"} <= {
        it["what"] for it in findings
    }
