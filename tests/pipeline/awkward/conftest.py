"""The whole way of a repository: prepared, its candidates made into Tasks, these graded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from pipeline.desk import Folders, open_desk
from pipeline.make import make_task
from pipeline.prepare import Prepared, prepare_repo
from pipeline.sandbox.protocol import Sandbox
from pipeline.selection import Choice
from pipeline.task.grade import Desk, Grade, grade
from pipeline.task.origin import Install
from pipeline.task.record import Task
from pipeline.task.reject import Reject
from pipeline.task.stub import RETURNS_NOTHING, stub_patch
from pipeline.task.tree import read_tree
from tests.pipeline.conftest import MakeTree, RepoFor

# The plugins that suites measure coverage and share work with, besides pytest.
PLUGINS = Install(
    packages=("pytest==9.0.2", "pytest-cov==7.0.0", "pytest-xdist==3.8.0"),
    exclude_newer="2026-01-31",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """A repository that is ready to be made tasks of."""

    prepared: Prepared
    desk: Desk
    folders: Folders

    @property
    def quarantined(self) -> dict[str, str]:
        """Return why ids are set aside."""
        return {it.id: it.reason for it in self.prepared.baseline.quarantined}

    def reject(self, title: str) -> Reject:
        """Return what stands in the way of a Task, before its candidate is tried or when it is."""
        left_out = {it.subject: it.reject for it in self.prepared.left_out}
        result = left_out.get(title) or self._make(title)
        assert isinstance(result, Reject), result
        return result

    def right_task(self, title: str) -> Task:
        """Make a Task of a candidate that the gold patch solves, and neither nothing nor a stub.

        Without a solution each target is broken.
        """
        task = self._make(title)
        assert isinstance(task, Task), task
        gold = self._grade(task, task.deletion.gold_patch)
        assert gold.verdict == "solved", gold.detail
        empty = self._grade(task, "")
        assert empty.verdict == "unsolved", empty.detail
        assert targets(task).keys() <= dict(empty.broken).keys()
        patch = stub_patch(task, read_tree(self.desk.tree), body=RETURNS_NOTHING)
        stub = self._grade(task, patch)
        assert stub.verdict == "unsolved", stub.detail
        return task

    def _make(self, title: str) -> Task | Reject:
        features = {it.title: it for slot in self.prepared.slots for it in slot}
        return make_task(
            features[title], prepared=self.prepared, desk=self.desk, folders=self.folders, seed=0
        )

    def _grade(self, task: Task, patch: str) -> Grade:
        return grade(task, patch, desk=self.desk)


PrepareFiles = Callable[..., Prepared | Reject]
FarmFor = Callable[..., Farm]


@pytest.fixture(scope="session")
def prepare_files(
    make_tree: MakeTree, repo_for: RepoFor, folders: Folders, sandbox: Sandbox
) -> PrepareFiles:
    """Return a function that prepares files as a user's repository."""

    def prepare(
        files: Mapping[str, str], *, install: Install | None = None, **command: object
    ) -> Prepared | Reject:
        repo = repo_for(make_tree(files), name="awkward", **command)
        if install is not None:
            repo = replace(repo, install=install)
        return prepare_repo(repo, folders=folders, sandbox=sandbox, choice=Choice())

    return prepare


@pytest.fixture(scope="session")
def farm_for(prepare_files: PrepareFiles, folders: Folders, sandbox: Sandbox) -> FarmFor:
    """Return a maker of farms; takes what `prepare_files` takes."""

    def make(files: Mapping[str, str], **how: object) -> Farm:
        prepared = prepare_files(files, **how)
        assert isinstance(prepared, Prepared), prepared
        desk = open_desk(
            prepared.snapshot,
            prepared.environment,
            command=prepared.repo.test,
            folders=folders,
            sandbox=sandbox,
        )
        assert isinstance(desk, Desk), desk
        return Farm(prepared=prepared, desk=desk, folders=folders)

    return make


def targets(task: Task) -> dict[str, str]:
    """Return what each target does without the Feature, by id."""
    return {it.id: it.ablated for it in task.evidence.fail_to_pass}
