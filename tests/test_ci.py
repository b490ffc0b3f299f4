"""The script that gives CI a container engine, and which base image such a new engine gets."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.sandbox.docker.base import open_base
from pipeline.sandbox.docker.engine import Engine, connect
from pipeline.sandbox.docker.loading import Entry, load_image, write_layer
from pipeline.sandbox.protocol import SandboxUnavailableError
from tests.pipeline.sandbox.conftest import unavailable

SCRIPT = Path(__file__).parents[1] / ".ci" / "docker-engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an engine may be started."""

    folder: Path
    address: str

    def script(self, word: str) -> subprocess.CompletedProcess[str]:
        ours = {"DOCKER_HOST": self.address, "REGROW_ENGINE": str(self.folder / "engine")}
        return subprocess.run(
            [SCRIPT, word], env={**os.environ, **ours}, capture_output=True, text=True, check=False
        )


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Return a place of our own, where nothing is left."""
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        unavailable("starting an engine needs root and `dockerd`")
    # Short: the path of a socket has a hundred letters at most.
    folder = Path(tempfile.mkdtemp(prefix="regrow-ci-"))
    place = Place(folder=folder, address=f"unix://{folder}/socket")
    monkeypatch.setenv("DOCKER_HOST", place.address)
    yield place
    place.script("stop")
    shutil.rmtree(folder)


@contextmanager
def opened() -> Iterator[Engine]:
    engine = connect()
    with closing(engine.client):
        yield engine


def test_the_script_starts_an_engine_and_ends_it(place: Place):
    with pytest.raises(SandboxUnavailableError):
        connect()
    started = place.script("start")
    assert started.returncode == 0, started.stderr
    with opened() as engine:
        assert engine.api.images() == []
    # Once more changes nothing.
    assert place.script("start").returncode == 0
    assert place.script("stop").returncode == 0
    with pytest.raises(SandboxUnavailableError):
        connect()
    assert str(place.folder) not in Path("/proc/mounts").read_text()


def test_the_script_leaves_the_engine_of_others_alone(place: Place):
    place.script("start")
    other = Place(folder=place.folder / "other", address=place.address)
    assert other.script("start").returncode == 0
    assert not other.folder.exists()
    assert other.script("stop").returncode == 0
    with opened() as engine:
        assert engine.answers()


def test_where_no_engine_can_start_the_script_fails_with_a_line(place: Place):
    nowhere = Place(folder=place.folder, address="tcp://127.0.0.1:9")
    done = nowhere.script("start")
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert "nobody answers at tcp://127.0.0.1:9" in done.stderr


def test_a_slim_image_of_this_python_is_taken_where_the_engine_has_it(place: Place):
    place.script("start")
    with opened() as engine:
        program = Entry(path="usr/local/bin/python3", content=b"#!/bin/sh", mode=0o755)
        layer = write_layer([program], into=place.folder / "layer.tar")
        image = load_image(
            engine, name="regrow-tests/slim:", layers=[layer], architecture="amd64", config={}
        )
        python = f"{sys.version_info.major}.{sys.version_info.minor}-slim"
        for tag in (python, f"{python}-bookworm", f"{python}-trixie"):
            engine.api.tag(image, "python", tag)
        base = open_base(engine, name="")
        # Jobs for the system's own interpreter need a base that has it in the same place.
        assert base.how == ("made" if sys.base_prefix == "/usr" else "pulled")
