"""Decide which finds no Task may have, and which are recorded alone."""

from dataclasses import dataclass
from typing import Literal

from pipeline.leaks.judge import Recovered
from pipeline.task.certificate import Channel

# What tells a solver what to build, and is meant to, where it is the Snapshot's own.
SPECIFICATION: frozenset[Channel] = frozenset({"documentation", "stub", "test", "instruction"})
# Two definitions that share so much of what is rare are the same one twice.
COPY_SHARE = 0.8
# How much of all that is deleted a place must give away that has a reason to give some.
MATERIAL_SHARE = 0.25
# `module`: code of the tree that stays, or its bytecode; `own`: anything else of the tree, or the
# request; `foreign`: installed, and not called as anything of the Snapshot is; `stray`: the rest.
Owner = Literal["module", "own", "foreign", "stray"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of a find."""

    blocks: bool
    # Why, in a few words.
    rule: str


def decide(recovered: Recovered, *, channel: Channel, owner: Owner, material: float) -> Decision:
    """Decide on what can be recovered of one symbol at one place.

    A request states names, signatures and what a feature does, and so may documents, stubs and
    tests, which show a line or two of how: that is the specification. Modules that stay and look
    like the deleted code are what an engineer would look at too, unless one has the same function
    or class once more. Code of other projects may follow the same interface, and has small things
    in common with any. Nothing else has a reason to be there.

    Args:
        recovered: what can be read of the symbol.
        channel: what kind of place it is.
        owner: whose place it is.
        material: how much the place gives away of all that is deleted; 0 to 1.
    """
    if owner == "module":
        if is_copy(recovered):
            return Decision(blocks=True, rule="the same code stays elsewhere")
        return Decision(blocks=False, rule="similar code that stays")
    is_slight = material < MATERIAL_SHARE
    if owner == "foreign" and is_slight:
        return Decision(blocks=False, rule="what others have in common with it")
    is_told = owner == "own" and channel in SPECIFICATION
    if "body" in recovered.parts and not (is_told and is_slight):
        return Decision(blocks=True, rule="the body can be read")
    if is_told or "signature" not in recovered.parts:
        return Decision(blocks=False, rule="specification")
    return Decision(blocks=True, rule="the signature can be read")


def is_copy(recovered: Recovered) -> bool:
    """Tell whether a module has a function or class once more, not its body alone.

    Methods of classes that follow one interface are often the same; only their class counts.
    """
    is_method = "." in recovered.symbol.partition(":")[2]
    is_named = len(recovered.parts) > len(("body",))
    return not is_method and is_named and recovered.share >= COPY_SHARE
