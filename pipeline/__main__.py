"""The `regrow` command."""

import signal
from importlib.metadata import entry_points, version
from typing import Annotated

import typer

from pipeline.commands.add_repo import add_repo
from pipeline.commands.bench import bench
from pipeline.commands.corpus import corpus
from pipeline.commands.doctor import doctor
from pipeline.commands.generate import generate
from pipeline.commands.grade import grade
from pipeline.commands.inspect import inspect
from pipeline.commands.interrupt import adopt_orphans, end_descendants
from pipeline.commands.monitor import monitor
from pipeline.commands.say import show_notices
from pipeline.commands.solve import solve_command
from pipeline.commands.verify import verify

app = typer.Typer(
    name="regrow",
    help="Make coding tasks by deleting features from real repositories.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"regrow {version('regrow')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Make coding tasks by deleting features from real repositories."""
    show_notices()


app.command()(add_repo)
app.command()(bench)
app.command()(corpus)
app.command()(doctor)
app.command()(generate)
app.command()(grade)
app.command()(inspect)
app.command()(monitor)
app.command("solve")(solve_command)
app.command()(verify)
for _found in sorted(entry_points(group="regrow.commands"), key=lambda it: it.name):
    app.command(_found.name)(_found.load())


def main() -> None:
    """Run the command line; leave no process behind, however it ends."""
    adopt_orphans()
    # Like Ctrl-C until a command knows better, so that what has begun is tidied up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    finally:
        end_descendants()


if __name__ == "__main__":
    main()
