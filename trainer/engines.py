"""Open the engine that a configuration names."""

from transformers import PreTrainedModel

from trainer.config import TrainConfig
from trainer.engine import Engine
from trainer.generate import LocalEngine
from trainer.model import load_model, weights
from trainer.serve import HttpEngine


def open_engine(config: TrainConfig) -> Engine:
    """Return an engine; a local one has the configuration's weights, a server what it was given.

    Raises:
        ValueError: the model cannot be used.
    """
    if config.engine.http is not None and config.engine.kind == "http":
        return HttpEngine(config.engine.http)
    model = load_model(config.model, seed=config.seed, copies=1)
    return LocalEngine(model, config.engine.local)


def give_weights(engine: Engine, model: PreTrainedModel) -> None:
    """Have an engine sample with the weights of a model, as version 0.

    Raises:
        EngineError: the server does not take them.
    """
    engine.sync(weights(model), version=0)
