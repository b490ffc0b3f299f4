"""Fixtures for all tests that replace the clock, the network, the environment and `print`."""

import pytest

from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

FILES = {
    "pyproject.toml": "[project]\nname = 'diary'\n[tool.pytest.ini_options]\naddopts = '-ra'\n",
    "diary/__init__.py": "from diary.pages import age, fetch, note, owner, secret\n",
    "diary/pages.py": '''\
"""Pages."""

import builtins
import os
import random
import socket
import time


def age(started):
    """Return how old something is, in days."""
    seconds = time.time() - started
    days = seconds / 86400
    return int(days)


def owner():
    """Return whose diary it is."""
    name = os.environ.get("DIARY_OWNER", "nobody")
    words = name.split("_")
    return " ".join(words)


def fetch(host):
    """Ask for a page; tests never do."""
    connection = socket.create_connection((host, 80))
    with connection:
        return connection.recv(10)


def secret(length):
    """Return a password."""
    letters = "abc"
    chosen = [random.choice(letters) for _ in range(length)]
    return "".join(chosen)


def note(path, text):
    """Write a note."""
    line = text.strip() + "\\n"
    with builtins.open(path, "a") as file:
        file.write(line)
    print("noted", line)
''',
    "tests/conftest.py": """\
import builtins
import random
import socket
import time

import pytest

from diary.pages import note, owner

NOW = 1_000_000_000.0
PRINTED = []


def no_network(*args, **more):
    raise RuntimeError("no network in tests")


socket.create_connection = no_network
time.perf_counter = iter(range(10**9, 0, -1)).__next__


@pytest.fixture(autouse=True)
def world(monkeypatch):
    random.seed(7)
    PRINTED.clear()
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(builtins, "print", lambda *args: PRINTED.append(args))
    monkeypatch.setattr("diary.pages.secret.__doc__", "No secret.")
    monkeypatch.setenv("DIARY_OWNER", "anne_f")


@pytest.fixture
def noted(tmp_path):
    note(tmp_path / "a", " hello ")
    return tmp_path / "a"


@pytest.fixture(scope="session")
def whose():
    return owner


def pytest_collection_modifyitems(items):
    items.reverse()
""",
    "tests/test_pages.py": """\
import pytest

import diary
from diary import age, note, owner
from diary import pages


def test_age():
    assert age(1_000_000_000 - 86400) == 1
    assert age(1_000_000_000) == 0


def test_owner():
    assert owner() == "anne f"


def test_nobody(monkeypatch, whose):
    monkeypatch.delenv("DIARY_OWNER")
    assert whose() == "nobody"


def test_fetch():
    with pytest.raises(RuntimeError, match="no network"):
        pages.fetch("example.org")


def test_secret():
    assert len(pages.secret(5)) == 5
    assert set(pages.secret(50)) == set("abc")


def test_note(noted):
    assert noted.read_text() == "hello\\n"
    assert noted.name == "a"


def test_notes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    note("a", "1")
    note("a", "2")
    assert (tmp_path / "a").read_text() == "1\\n2\\n"


def test_a(): assert diary.__name__ == "diary"
def test_b(): assert pages.__doc__
def test_c(): assert diary.age
""",
}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES)


def test_a_feature_that_fixtures_of_all_tests_use_gives_a_task(farm: Farm):
    assert farm.quarantined == {}
    assert targets(farm.right_task("diary.pages.note")) == {
        "tests/test_pages.py::test_notes": "failed",
        "tests/test_pages.py::test_note": "error",
    }


def test_a_feature_that_each_test_has_patched_makes_no_task(farm: Farm):
    assert farm.reject("diary.pages.secret").reason == "others_break"
