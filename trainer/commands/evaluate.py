"""`regrow evaluate`: measure how many Tasks a policy solves, without training it."""

from pathlib import Path
from typing import Annotated

import typer

from trainer.commands.say import OUT, ending_in_one_line


def evaluate(
    config: Annotated[Path, typer.Argument(help="TOML file, as `regrow train` takes it.")],
    out: Annotated[
        Path, typer.Option(help="Folder of the tries; with the same one, done Tasks are kept.")
    ] = Path("runs/evaluate"),
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Checkpoint whose model is tried, in place of the configuration's."),
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Tries at each Task.")] = 4,
    override: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE in place of what the file says: task.sandbox=auto."),
    ] = None,
) -> None:
    """Try every Task some times and tell how many are solved, and what went wrong."""
    with ending_in_one_line("stopped; the same command goes on with the next Task"):
        _evaluate(config, out, checkpoint, attempts=attempts, overrides=override or [])


def _evaluate(
    path: Path, out: Path, checkpoint: Path | None, *, attempts: int, overrides: list[str]
) -> None:
    from trainer.config import load_config
    from trainer.evaluate import evaluate as measure
    from trainer.evaluate import findings_table, line_of, open_scene, total, with_model_of

    config = load_config(path, overrides=overrides)
    if checkpoint is not None:
        config = with_model_of(config, checkpoint)
    with open_scene(config) as scene:
        scores = measure(
            config,
            scene,
            folder=out,
            attempts=attempts,
            report=lambda it: OUT.print(line_of(it), soft_wrap=True),
        )
    whole = total(scores)
    OUT.print(line_of(whole), soft_wrap=True)
    OUT.print(findings_table(whole))
