"""Read what an agent asks of a shell, and say what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.sandbox.protocol import MIB, Finished, Limits

# Seconds of a command that names none, and the most that one may name.
DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 600.0
# More is killed: nobody reads it.
MAX_OUTPUT_BYTES = 4 * MIB
# Of an output at its beginning, and as many at its end.
SHOWN_CHARS = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A text for `/bin/sh`.

    Example: `Command(text="ls | wc -l", timeout_s=60.0)`.
    """

    text: str
    timeout_s: float

    @property
    def limits(self) -> Limits:
        """What it may use: as much CPU as time, of which several processes make more."""
        return Limits(wall_s=self.timeout_s, cpu_s=self.timeout_s, output_bytes=MAX_OUTPUT_BYTES)


def read_command(arguments: Mapping[str, object]) -> Command | str:
    """Return the command that a call asks for, or what is wrong with the call."""
    if unknown := sorted(arguments.keys() - {"command", "timeout_s"}):
        return f"run_command takes `command`, `timeout_s`, not {unknown}"
    text = arguments.get("command")
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        return f"`command` is {text!r}, expected a text for the shell"
    timeout_s = arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not is_number or not 0 < timeout_s <= MAX_TIMEOUT_S:  # type: ignore[operator]
        return f"`timeout_s` is {timeout_s!r}, expected seconds up to {MAX_TIMEOUT_S:.0f}"
    return Command(text=text, timeout_s=float(timeout_s))  # type: ignore[arg-type]


def describe(finished: Finished) -> str:
    """Return what a command printed, cut in the middle, and how it ended in a line of its own."""
    text = finished.output.decode("utf-8", "replace")
    gap = len(text) - 2 * SHOWN_CHARS
    if gap > 0:
        text = f"{text[:SHOWN_CHARS]}\n… {gap} more characters …\n{text[-SHOWN_CHARS:]}"
    if text and not text.endswith("\n"):
        text += "\n"
    return text + _ending(finished)


def _ending(finished: Finished) -> str:
    if finished.limit is not None:
        return f"the command went over its limit of {finished.limit}"
    return f"exit status {finished.exit_code}"
