"""Have SWE-smith make and judge bugs of one library, with its own generator and validator.

It runs in a process of its own, with SWE-smith and what that needs on its path, in a folder that
SWE-smith fills. The request is JSON on standard input, the answer JSON in `answer.json`:

    {"name": "toolz", "commit": "<sha256 of the Snapshot>", "tree": "<folder of its files>",
     "image": "<image with the tree at /testbed>", "test_cmd": "<shell line>", "seed": 0,
     "num_candidates": 8, "workers": 2}
"""

import json
import random
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from swebench.harness.constants import FAIL_TO_PASS, KEY_INSTANCE_ID, LOG_REPORT, LOG_TEST_OUTPUT
from swebench.harness.docker_build import close_logger
from swesmith.bug_gen import collect_patches
from swesmith.bug_gen.procedural import generate
from swesmith.constants import LOG_DIR_BUG_GEN, LOG_DIR_RUN_VALIDATION, REF_SUFFIX
from swesmith.harness import utils, valid
from swesmith.harness.grading import read_test_output
from swesmith.profiles import registry
from swesmith.profiles.python import PythonProfile

ASKED = json.load(sys.stdin)
# Pairs of a function and a change to it that are drawn for each candidate: some come to nothing.
PAIRS = 3
# A suite may take so many times what it takes on the untouched tree.
PATIENCE = 3


@dataclass
class Library(PythonProfile):
    """The library as SWE-smith's registry knows those that it has mirrors and images of."""

    owner: str = "regrow"
    repo: str = ASKED["name"]
    commit: str = ASKED["commit"]
    test_cmd: str = ASKED["test_cmd"]

    @property
    def image_name(self):
        return ASKED["image"]

    def pull_image(self):
        """Do nothing: the engine has the image."""

    def clone(self, dest=None):
        """Copy the tree, where SWE-smith would clone its mirror."""
        folder = dest or self.repo_name
        is_new = not Path(folder).exists()
        if is_new:
            shutil.copytree(ASKED["tree"], folder, symlinks=True)
        return folder, is_new

    def _is_repo_private(self):
        return False


def main():
    """Run the three steps that SWE-smith's guide names, and time the last one."""
    registry.register_profile(Library)
    library = registry.get(Library().repo_name)
    started_s = time.monotonic()
    num_tests = run_reference(library)
    began_s = time.monotonic()
    library.timeout = max(library.timeout, PATIENCE * (began_s - started_s))
    bugs = make_bugs(library)
    generated_s = time.monotonic()
    chosen = Path("chosen.json")
    chosen.write_text(json.dumps(bugs))
    used_s = meter_containers()
    valid.main(str(chosen), workers=ASKED["workers"])
    answer = {
        "num_tests": num_tests,
        "generate_s": generated_s - began_s,
        "validate_s": time.monotonic() - generated_s,
        "cpu_s": sum(used_s),
        "verdicts": Counter(verdict(library, bug) for bug in bugs),
    }
    Path("answer.json").write_text(json.dumps(answer))


def run_reference(library):
    """Run the untouched suite, as the validator does first; return how many tests it sees pass."""
    name = f"{library.repo_name}{REF_SUFFIX}"
    logger, _ = utils.run_patch_in_container(
        {KEY_INSTANCE_ID: name}, library.repo_name, LOG_DIR_RUN_VALIDATION, library.timeout_ref
    )
    close_logger(logger)
    log = LOG_DIR_RUN_VALIDATION / library.repo_name / name / LOG_TEST_OUTPUT
    output, is_whole = read_test_output(log) if log.exists() else ("", False)
    statuses = library.log_parser(output) if is_whole else {}
    return sum(status == "PASSED" for status in statuses.values())


def make_bugs(library):
    """Return a sample of what the generator makes, each with an id of its own."""
    num_candidates = ASKED["num_candidates"]
    generate.main(
        library.repo_name,
        max_bugs=-1,
        seed=ASKED["seed"],
        interleave=True,
        max_candidates=PAIRS * num_candidates,
    )
    folder = LOG_DIR_BUG_GEN / library.repo_name
    collect_patches.main(folder)
    found = folder.with_name(f"{folder.name}_all_patches.json")
    bugs = json.loads(found.read_text()) if found.exists() else []
    named = sorted({bug[KEY_INSTANCE_ID]: bug for bug in bugs}.items())
    rng = random.Random(ASKED["seed"])  # noqa: S311  a sample, no secret
    drawn = rng.sample(named, min(num_candidates, len(named)))
    return [bug for _, bug in drawn]


def meter_containers():
    """Have the validator note what each container has used; return the list of CPU seconds."""
    used_s = []
    clean_up = utils.cleanup_container

    def noting(client, container, logger):
        if container:
            stats = client.api.stats(container.id, stream=False, one_shot=True)
            used_s.append(stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9)
        clean_up(client, container, logger)

    utils.cleanup_container = noting
    return used_s


def verdict(library, bug):
    """Return what the validator's report says of a bug, in the words that it counts with."""
    report = LOG_DIR_RUN_VALIDATION / library.repo_name / bug[KEY_INSTANCE_ID] / LOG_REPORT
    if not report.exists():
        return "fail"
    found = json.loads(report.read_text())
    if "timed_out" in found:
        return "fail" if "missing_pregold_output" in found else "timeout"
    return "1+_f2p" if found[FAIL_TO_PASS] else "0_f2p"


if __name__ == "__main__":
    main()
