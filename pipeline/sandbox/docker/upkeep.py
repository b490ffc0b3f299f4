"""Forget the baked images that no job has started from for long; they can be baked again.

When an engine last gave an image its name counts as its last use, so all drivers agree on it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from docker.errors import APIError

from pipeline.sandbox.docker.engine import Engine

REPOSITORY = "regrow/bench"
_DAY_S = 24 * 3600.0
# Days without a use after which an image goes.
_KEPT_DAYS = 7


def note_use(engine: Engine, tag: str, image: Mapping[str, Any], *, now: float) -> None:
    """Have the engine know that an image is in use, once a day.

    Args:
        engine: who keeps the image.
        tag: its name.
        image: what the engine says of it.
        now: in seconds since 1970.

    Raises:
        EngineLostError, SandboxBrokenError: the engine is gone, or cannot.
    """
    if _last_use(image) < now - _DAY_S:
        with engine.calls("name an image"):
            engine.api.tag(image["Id"], *tag.split(":"))


def sweep(engine: Engine, *, now: float) -> int:
    """Remove the images that nobody has used for a week; return how many there were.

    Args:
        engine: who keeps them.
        now: in seconds since 1970.

    Raises:
        EngineLostError, SandboxBrokenError: the engine is gone, or does not list its images.
    """
    least = now - _KEPT_DAYS * _DAY_S
    with engine.calls("list its images"):
        found = engine.api.images(REPOSITORY)
        # Looked at one by one, unless they are too young anyway.
        tags = [tag for it in found if it["Created"] < least for tag in it["RepoTags"] or ()]
        return sum(_forget(engine, tag, least=least) for tag in tags)


def _forget(engine: Engine, tag: str, *, least: float) -> bool:
    try:
        if _last_use(engine.api.inspect_image(tag)) >= least:
            return False
        engine.api.remove_image(tag)
    except APIError:
        # Gone, or a container needs it.
        return False
    return True


def _last_use(image: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(image["Metadata"]["LastTagTime"]).timestamp()
