"""Ask a judge about all Episodes of a step; those that it did not judge are told, with why."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from trainer.feedback.judge import JudgeConfig, JudgeDownError, JudgeError, judge
from trainer.records import Episode, Finding

SKIPPED = "not asked, as the judge did not answer about another episode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a judge said of some Episodes.

    Example: `Judged(findings={"7-task.0": (Finding(…),)}, unjudged={"7-task.1": "http://…"})`.
    """

    # By id of the Episode, for all that were judged.
    findings: Mapping[str, tuple[Finding, ...]]
    # Why there is no judgement, by id of the Episode: in one line, the judge's doing and nobody
    # else's.
    unjudged: Mapping[str, str]


def judge_all(episodes: Sequence[Episode], *, config: JudgeConfig) -> Judged:
    """Judge all Episodes that count; one that does not answer is not waited for again and again."""
    is_down = Event()

    def ask(episode: Episode) -> tuple[Finding, ...] | str:
        if is_down.is_set():
            return SKIPPED
        try:
            return judge(episode, config=config)
        except JudgeDownError as error:
            is_down.set()
            return str(error)
        except JudgeError as error:
            return str(error)

    valid = [it for it in episodes if it.is_valid]
    with ThreadPoolExecutor(config.jobs, thread_name_prefix="judge") as pool:
        said = dict(zip((it.id for it in valid), pool.map(ask, valid), strict=True))
    return Judged(
        findings={key: it for key, it in said.items() if not isinstance(it, str)},
        unjudged={key: it for key, it in said.items() if isinstance(it, str)},
    )
