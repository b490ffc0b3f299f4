"""What a suite misses is named by its errors, and is never in the tree itself."""

from pathlib import Path

import pytest

from pipeline.proposal.missing import missing_packages
from pipeline.sandbox.protocol import Finished
from pipeline.task.run import SuiteRun
from tests.pipeline.package_index import write_tree


def _run(
    *,
    collecting: str = "",
    running: str = "",
    output: str = "",
    ended: bool = True,
    status: int = 1,
):
    return SuiteRun(
        outcomes=(),
        collected=(),
        collect_errors=(("tests/test_a.py", collecting),) if collecting else (),
        messages={"tests/test_a.py::test_a": running} if running else {},
        trace=None,
        ended=ended,
        finished=Finished(
            exit_code=status, limit=None, output=output.encode(), results=b"", cpu_s=1.0, wall_s=1.0
        ),
    )


@pytest.mark.parametrize(
    ("run", "packages"),
    [
        (_run(collecting="ModuleNotFoundError: No module named 'hypothesis'"), {"hypothesis"}),
        (_run(collecting="ModuleNotFoundError: No module named 'pytest_mock.x'"), {"pytest-mock"}),
        (_run(running="ModuleNotFoundError: No module named 'yaml'"), {"pyyaml"}),
        (_run(running="FixtureLookupError: fixture 'mocker' not found"), {"pytest-mock"}),
        (_run(running="FixtureLookupError: fixture 'of_ours' not found"), set()),
        (_run(output="No module named 'six'", ended=False), {"six"}),
        # A `conftest.py` that does not import is for pytest a wrong use of it.
        (_run(output="No module named 'six'", status=4), {"six"}),
        (_run(output="pytest: Missing required plugins: pytest-x", ended=False), {"pytest-x"}),
        # A suite that ends may print what it likes.
        (_run(output="No module named 'six'"), set()),
        (_run(collecting="ModuleNotFoundError: No module named 'inner'"), set()),
        (_run(collecting="ModuleNotFoundError: No module named 'helpers.more'"), set()),
        (_run(collecting="AssertionError: assert 1 == 2"), set()),
    ],
)
def test_packages_are_named_by_what_goes_wrong(tmp_path: Path, run: SuiteRun, packages: set):
    tree = write_tree(tmp_path, {"src/inner.py": "", "helpers/one.py": ""})
    assert missing_packages(run, tree=tree, import_roots=("src",)) == packages
