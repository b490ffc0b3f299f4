"""Let the policy try prompts: all Episodes that run ask the engine at once, round by round."""

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from trainer.chat import Chat
from trainer.engine import Engine
from trainer.env import World
from trainer.records import Episode
from trainer.running import Running
from trainer.tries import RolloutConfig, Try

__all__ = ["RolloutConfig", "Try", "run_episodes"]


def run_episodes(
    tries: Sequence[Try],
    *,
    world: World,
    engine: Engine,
    chat: Chat,
    config: RolloutConfig,
    seed: int,
) -> Generator[Episode, None, None]:
    """Yield the Episode of each try, as they end; the same seed and weights give the same ones.

    An environment that fails ends its own Episode as `infra`, and no other. Closing the generator
    early leaves no environment open.

    Raises:
        EngineError: the engine failed, which says nothing of the Episodes that were running.
        SandboxStoppedError: the run is being stopped.
    """
    running = [Running(it, chat=chat, config=config, seed=seed) for it in tries]
    try:
        with ThreadPoolExecutor(config.jobs) as pool:
            list(pool.map(lambda it: it.begin(world), running))
            yield from _rounds(running, engine=engine, pool=pool)
    finally:
        for it in running:
            it.abandon()


def _rounds(
    running: list[Running], *, engine: Engine, pool: ThreadPoolExecutor
) -> Iterator[Episode]:
    """Yield Episodes as they end, the others asking the engine all at once."""
    while running:
        yield from (it.episode for it in running if it.episode is not None)
        running = [it for it in running if it.episode is None]
        if running:
            answers = engine.generate([it.request() for it in running])
            list(pool.map(Running.take, running, answers))
