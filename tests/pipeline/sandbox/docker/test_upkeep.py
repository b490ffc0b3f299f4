"""Images that no job needs any more go, and those in use stay."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.sandbox.docker.baking import Baked, bake
from pipeline.sandbox.docker.base import ensure_base
from pipeline.sandbox.docker.engine import Engine, connect
from pipeline.sandbox.docker.upkeep import sweep
from pipeline.sandbox.protocol import Mount
from tests.pipeline.engines import SecondEngine

DAY_S = 24 * 3600.0


@pytest.fixture
def lonely(second_engine: SecondEngine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Return an engine whose images nobody else needs."""
    monkeypatch.setenv("DOCKER_HOST", second_engine.unix)
    return connect()


@pytest.fixture
def baked(lonely: Engine, tmp_path: Path) -> Baked:
    return make(lonely, tmp_path)


def make(engine: Engine, folder: Path, *, now: float | None = None) -> Baked:
    return bake(engine, ensure_base(engine), (Mount(source=folder, target="/data"),), now=now)


def last_use(engine: Engine, tag: str) -> str:
    return str(engine.api.inspect_image(tag)["Metadata"]["LastTagTime"])


@contextmanager
def container_of(engine: Engine, image: str) -> Iterator[None]:
    key = engine.api.create_container(image, command=["/bin/true"])["Id"]
    try:
        yield
    finally:
        engine.api.remove_container(key)


def test_an_image_that_was_used_this_week_stays(lonely: Engine, baked: Baked):
    assert sweep(lonely, now=time.time() + 6 * DAY_S) == 0
    assert lonely.find_image(baked.tag) is not None


def test_an_image_that_nobody_used_for_a_week_goes_and_is_baked_again(
    lonely: Engine, baked: Baked, tmp_path: Path
):
    assert sweep(lonely, now=time.time() + 8 * DAY_S) > 0
    assert lonely.find_image(baked.tag) is None
    assert make(lonely, tmp_path).was_built
    assert lonely.find_image(baked.tag) is not None


def test_an_image_that_a_container_needs_stays(lonely: Engine, baked: Baked):
    with container_of(lonely, baked.image):
        sweep(lonely, now=time.time() + 8 * DAY_S)
        assert lonely.find_image(baked.image) is not None


def test_baking_what_is_there_counts_as_a_use_once_a_day(
    lonely: Engine, baked: Baked, tmp_path: Path
):
    first = last_use(lonely, baked.tag)
    make(lonely, tmp_path)
    assert last_use(lonely, baked.tag) == first
    again = make(lonely, tmp_path, now=time.time() + 2 * DAY_S)
    assert again.image == baked.image
    assert last_use(lonely, baked.tag) > first
