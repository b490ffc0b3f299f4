"""Measure SWE-smith's procedural generator and validator on a library, as a peer of ours.

What runs is its own code, from a folder that the user gives: `generate`, `collect_patches` and
`valid`, and with them its change operators, its threads, its containers, its parser of logs and its
verdict. It needs images and mirrors that it cannot have here, so these parts are ours:

- the library's entry in its registry: a profile of its class for Python, with our test command;
- the image: interpreter, packages and their bytecode as in our own runs, the tree at `/testbed`
  without a git history;
- the clone: a copy of the Snapshot;
- the time-out of a run: its 90 s, or three times what the untouched suite takes where that is more;
- the sample: its generator gets a limit, and of what it makes some are drawn;
- the meter: before a container ends, the engine is asked what CPU time that took.

Only its validation is timed. Its generation is not, as our finding of features is not, nor is its
run of the untouched suite, as our baseline is not: all that is in its favour. Its bugs are changes
of a single function or class, each in one file; ours are features.

Its generator parses sources and runs none of them. Its containers have the engine's default network
and run as root, as it starts them.
"""

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.bench.command import CommandFailedError
from pipeline.bench.peer_image import bake_library, remove_containers, suite_line
from pipeline.bench.production import SEED, Works, num_cores
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.docker.engine import connect

SCRIPT = Path(__file__).parent / "inside" / "swe_smith.py"
# Everything that the script imports needs, and no more; later releases of swebench do not fit.
REQUIREMENTS = (
    *("swesmith==0.0.9", "swebench==4.1.0", "astor", "docker", "ghapi", "jinja2", "libcst"),
    *("python-dotenv", "rich", "tqdm", "unidiff", "tree-sitter>=0.25"),
    *(
        f"tree-sitter-{name}"
        for name in (
            *("c", "c-sharp", "cpp", "go", "java", "javascript", "php", "ruby", "rust"),
            "typescript",
        )
    ),
)
_IMPORTS = "import swesmith.bug_gen.procedural.generate, swesmith.harness.valid"
# Shown of a log.
_LAST_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRun:
    """What SWE-smith came to on one library.

    Example: `PeerRun(num_tests=516, num_candidates=8, num_tasks=5, num_failed=0, …)`.
    """

    # Tests that its parser sees pass on the untouched tree.
    num_tests: int
    num_candidates: int
    # Candidates with a test that fails with the bug and passes without: its own criterion.
    num_tasks: int
    # Candidates that gave no outcomes: the patch did not apply, or the time was up.
    num_failed: int
    # Of the generator, and of the validator alone.
    generate_s: float
    wall_s: float
    # Of the validator's containers.
    cpu_s: float

    @property
    def tasks_per_hour(self) -> float:
        """Validated tasks an hour."""
        return 3600 * self.num_tasks / self.wall_s


class Peer:
    """SWE-smith, as it lies in a folder with the packages that it needs.

    Example: `Peer(Path("swe-smith")).run(works, name="toolz", num=8, folder=Path("…"))`.
    """

    def __init__(self, folder: Path) -> None:
        """Try it, and an engine.

        Args:
            folder: absolute.

        Raises:
            CommandFailedError: it cannot be imported.
            SandboxUnavailableError: no engine answers.
        """
        self._folder = folder
        tried = subprocess.run(
            [sys.executable, "-c", _IMPORTS],
            env=self._environ(),
            capture_output=True,
            text=True,
            check=False,
        )
        if tried.returncode:
            reason = (tried.stderr.strip().splitlines() or ["it says nothing"])[-1]
            install = shlex.join(("pip", "install", "--target", str(folder), *REQUIREMENTS))
            raise CommandFailedError(
                f"{folder}: SWE-smith cannot be imported: {reason};"
                f" expected what `{install}` leaves there"
            )
        self._engine = connect()

    def run(self, works: Works, *, name: str, num: int, folder: Path) -> PeerRun:
        """Have it make and validate some bugs of a library, on all cores.

        Args:
            works: where the library is prepared.
            name: of the library.
            num: of candidates.
            folder: for what it writes; there is none yet.

        Raises:
            CommandFailedError: it does not come to its end, or sees no test pass.
        """
        folder.mkdir(parents=True)
        sandbox = open_sandbox("bubblewrap")
        try:
            desk = works.desk(sandbox)
            image = bake_library(self._engine, desk)
        finally:
            sandbox.stop()
        asked = {
            "name": name,
            "commit": works.prepared.snapshot.digest,
            "tree": str(desk.tree),
            "image": image,
            "test_cmd": suite_line(desk),
            "seed": SEED,
            "num_candidates": num,
            "workers": num_cores(),
        }
        # It gives containers names that one left behind would keep.
        remove_containers(self._engine, image)
        try:
            return _read(self._answer(asked, folder=folder), name=name)
        finally:
            remove_containers(self._engine, image)

    def _answer(self, asked: dict[str, object], *, folder: Path) -> dict[str, Any]:
        log = folder / "log.txt"
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [sys.executable, str(SCRIPT)],
                cwd=folder,
                env=self._environ(),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )
            try:
                process.communicate(json.dumps(asked))
            except BaseException:
                process.kill()
                process.wait()
                raise
        if process.returncode:
            last = " ".join(log.read_text("utf-8", "replace")[-_LAST_CHARACTERS:].split())
            raise CommandFailedError(
                f"SWE-smith: {asked['name']}: status {process.returncode}: {last}"
            )
        answer: dict[str, Any] = json.loads((folder / "answer.json").read_text("utf-8"))
        return answer

    def _environ(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self._folder)}


def _read(answer: dict[str, Any], *, name: str) -> PeerRun:
    """Return what a run came to.

    Raises:
        CommandFailedError: that can be no verdict on its bugs.
    """
    verdicts = Counter(answer["verdicts"])
    num_failed = verdicts["fail"] + verdicts["timeout"]
    if not answer["num_tests"] or verdicts.total() == num_failed:
        raise CommandFailedError(
            f"SWE-smith: {name}: sees {answer['num_tests']} tests pass on the untouched tree, and"
            f" judges {dict(verdicts)}, expected tests and verdicts"
        )
    return PeerRun(
        num_tests=answer["num_tests"],
        num_candidates=verdicts.total(),
        num_tasks=verdicts["1+_f2p"],
        num_failed=num_failed,
        generate_s=answer["generate_s"],
        wall_s=answer["validate_s"],
        cpu_s=answer["cpu_s"],
    )
