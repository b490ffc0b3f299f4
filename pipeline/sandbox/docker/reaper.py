"""Remove the containers that killed drivers have left behind."""

import time

from docker.errors import APIError

from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.owner import LABEL, is_abandoned


def reap(engine: Engine) -> int:
    """Remove every container of ours that nobody needs any more; return how many there were.

    Raises:
        EngineLostError: the engine is gone.
    """
    with engine.calls("list containers"):
        found = engine.api.containers(all=True, filters={"label": f"{LABEL}=1"})
        abandoned = [it["Id"] for it in found if is_abandoned(it["Labels"], now=time.time())]
        for container in abandoned:
            remove(engine, container)
    return len(abandoned)


def remove(engine: Engine, container: str) -> None:
    """Kill and remove a container, unless somebody else has.

    Raises:
        docker.errors.APIError: the engine cannot.
    """
    try:
        engine.api.remove_container(container, force=True, v=True)
    except APIError as error:
        # Gone, or being removed by somebody else.
        if error.status_code not in {404, 409}:
            raise
