"""Short questions to the detectors."""

from typing import Any

from tests.trainer.feedback.episodes import Said, reply
from trainer.feedback.scan import recheck, scan
from trainer.records import Episode, Finding


def kinds(episode: Episode) -> list[str]:
    return [it.kind for it in scan(episode)]


def found(episode: Episode, kind: str) -> Finding:
    """The one Finding of a kind."""
    (finding,) = [it for it in scan(episode) if it.kind == kind]
    return finding


def facts(episode: Episode, kind: str) -> dict[str, Any]:
    return found(episode, kind).facts


def is_mended(episode: Episode, kind: str, said: Said) -> bool:
    return recheck(reply(said), found(episode, kind), episode)
