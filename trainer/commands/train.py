"""`regrow train`: turn the Tasks of a run into a better policy."""

from pathlib import Path
from typing import Annotated

import typer

from trainer.commands.say import BAD_INPUT, OUT, end, ending_in_one_line


def train(
    config: Annotated[Path, typer.Argument(help="TOML file with the configuration of the run.")],
    out: Annotated[
        Path, typer.Option(help="Folder of the run; the same one again goes on where it stopped.")
    ] = Path("runs/train"),
    override: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE in place of what the file says: optimizer.lr=1e-6."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the whole configuration, and do nothing.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Measure whether this trainer tells the truth here, and stop."
        ),
    ] = False,
) -> None:
    """Train a policy on Tasks; hints where it went wrong make it its own teacher."""
    with ending_in_one_line("stopped; the same command goes on from the last checkpoint"):
        _train(config, out, overrides=override or [], dry_run=dry_run, check=check)


def _train(path: Path, out: Path, *, overrides: list[str], dry_run: bool, check: bool) -> None:
    from trainer.config import equation, load_config

    config = load_config(path, overrides=overrides)
    if dry_run:
        OUT.print_json(config.model_dump_json())
        OUT.print(equation(config))
        return
    if check:
        from trainer.check import check_run, checks_table

        results = check_run(config)
        OUT.print(checks_table(results))
        if not all(it.holds for it in results):
            end("something does not hold", code=BAD_INPUT)
        return
    from trainer.run import run

    run(config, out)
