"""What was discovered can be named, so that a package more does not end the discovery."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.desk import Folders
from pipeline.proposal.install import spelled_out
from pipeline.proposal.record import Shop, Subject
from pipeline.repo import Fetched, fetch
from pipeline.sandbox.protocol import Sandbox
from pipeline.snapshot import snapshot_tree
from pipeline.task.origin import Install, Repo, Source, TestCommand
from tests.pipeline.package_index import write_tree

PROJECT = '[project]\nname = "tiny"\ndependencies = ["base"]\n'
TOX = "[testenv]\ndeps =\n    helper>=1\n    pytest\n"


@pytest.mark.parametrize(
    ("route", "install"),
    [
        ("group:test", Install(groups=("test",))),
        ("extra:dev", Install(extras=("dev",))),
        ("requirements:requirements/test.txt", Install(requirements=("requirements/test.txt",))),
        # What the project itself needs and pytest are always added.
        ("tox", Install(packages=("helper>=1",))),
        ("none", Install()),
    ],
)
def test_each_route_is_named_as_a_manifest_has_it(
    tmp_path: Path, sandbox: Sandbox, route: str, install: Install
):
    files = {"pyproject.toml": PROJECT, "tox.ini": TOX, "tiny.py": ""}
    location = str(write_tree(tmp_path / "tiny", files))
    repo = Repo(
        name="tiny",
        source=Source(kind="path", location=location, pin=""),
        licence="MIT",
        python="3.11",
        install=Install(exclude_newer="2024-05-06"),
        test=TestCommand(),
    )
    folders = Folders(run=tmp_path, cache=tmp_path / "cache", index="", scratch=tmp_path / "work")
    fetched = fetch(repo, into=tmp_path, cache=folders.cache, index="")
    assert isinstance(fetched, Fetched)
    subject = Subject(fetched=fetched, tree=snapshot_tree(fetched.archive, cache=folders.cache))
    shop = Shop(folders=folders, sandbox=sandbox, say=print)
    found = spelled_out(repo, route, subject=subject, shop=shop)
    assert found == replace(install, exclude_newer="2024-05-06")
    named = replace(repo, install=replace(repo.install, packages=("other",)))
    assert spelled_out(named, route, subject=subject, shop=shop) == named.install
