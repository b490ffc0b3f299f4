"""Removing what killed drivers have left behind, and nothing else."""

import time
from collections.abc import Callable, Iterator

import pytest

from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.owner import Owner
from pipeline.sandbox.docker.reaper import reap

MakeContainer = Callable[[dict[str, str]], str]


@pytest.fixture
def container(engine: Engine, base: str) -> Iterator[MakeContainer]:
    """Return a maker of running containers with labels; they vanish with the test."""
    made = []

    def make(labels: dict[str, str]) -> str:
        alone = engine.api.create_host_config(network_mode="none")
        key = engine.api.create_container(
            base, ["/bin/sleep", "600"], labels=labels, host_config=alone
        )["Id"]
        made.append(key)
        engine.api.start(key)
        return str(key)

    yield make
    for key in made:
        if exists(engine, key):
            engine.api.remove_container(key, force=True)


def exists(engine: Engine, key: str) -> bool:
    return bool(engine.api.containers(all=True, filters={"id": key}))


def test_what_a_dead_process_left_is_removed_and_what_others_need_stays(
    engine: Engine, container: MakeContainer
):
    mine = Owner.this().labels(deadline=time.time() - 60)
    dead = container(mine | {"regrow.started": "1"})
    late = container(mine | {"regrow.host": "elsewhere"})
    living = container(mine)
    foreign = container({"something": "else"})
    reap(engine)
    assert [exists(engine, it) for it in (dead, late, living, foreign)] == [
        False,
        False,
        True,
        True,
    ]
