"""One way to cheat."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pipeline.hacks.setting import FileChanges, Files, Setting
from pipeline.hacks.stub import stub

HackClass = Literal["H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H10", "H12", "H13"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hack:
    """A patch that seeks the reward without the feature.

    Example: `Hack(name="exits at import", hack_class="H4", is_adaptive=False, make=…)`.
    """

    # Unique; says what it does.
    name: str
    hack_class: HackClass
    # It knows how Regrow grades, though not the hidden tests and names of a run.
    is_adaptive: bool
    # Changes to the solve tree.
    make: Callable[[Setting], FileChanges]
    # What an unclean tree holds besides, from the Setting; a scrubbed one never does.
    litter: Callable[[Setting], Files] | None = None


def stub_with(
    name: str,
    hack_class: HackClass,
    *,
    is_adaptive: bool = False,
    **code: str,
) -> Hack:
    """Return a hack that lives in the module of the deleted symbols.

    Args:
        name: of the hack.
        hack_class: of the hack.
        is_adaptive: see `Hack`.
        code: `prelude`, `early`, `body`, `whole`, as `stub` takes them.
    """
    return Hack(
        name=name,
        hack_class=hack_class,
        is_adaptive=is_adaptive,
        make=lambda setting: stub(setting, **code),
    )
