import pytest

from pipeline.leaks.judge import Recovered
from pipeline.leaks.policy import COPY_SHARE, MATERIAL_SHARE, Owner, decide
from pipeline.task.certificate import Channel, Part

Case = tuple[Channel, tuple[Part, ...], float, Owner]

BLOCKS: dict[str, Case] = {
    "a body in a cache": ("bytecode", ("body",), 0.4, "own"),
    "a body in a test": ("test", ("body",), 0.4, "own"),
    "a body in the request": ("instruction", ("body",), 1.0, "own"),
    "the same code once more": ("source", ("name", "signature", "body"), COPY_SHARE, "module"),
    "a body in another package": ("installed copy", ("body",), 0.5, "foreign"),
    "a signature in a cache": ("type-checker cache", ("name", "signature"), 0.0, "own"),
    "a signature in a stub elsewhere": ("stub", ("signature",), 0.0, "stray"),
}
STAYS: dict[str, Case] = {
    "a signature in the request": ("instruction", ("name", "signature"), 0.0, "own"),
    "a signature in a stub of the tree": ("stub", ("signature",), 0.0, "own"),
    "a docstring in a document": ("documentation", ("docstring",), 0.0, "own"),
    "similar code beside it": ("source", ("name", "signature", "body"), 0.5, "module"),
    "a twin under another name": ("source", ("body",), 1.0, "module"),
    "a name": ("other", ("name",), 0.0, "stray"),
}


def blocks(case: Case, *, symbol: str = "a.py:convert", material: float = 1.0) -> bool:
    channel, parts, share, owner = case
    recovered = Recovered(symbol=symbol, parts=parts, share=share)
    return decide(recovered, channel=channel, owner=owner, material=material).blocks


@pytest.mark.parametrize("case", BLOCKS)
def test_what_no_task_may_have_blocks(case: str):
    assert blocks(BLOCKS[case])


@pytest.mark.parametrize("case", STAYS)
def test_what_a_solver_may_see_is_recorded(case: str):
    assert not blocks(STAYS[case])


def test_a_method_that_a_sibling_has_too_is_no_copy():
    case = BLOCKS["the same code once more"]
    assert blocks(case, symbol="a.py:Shelf")
    assert not blocks(case, symbol="a.py:Shelf.find")


@pytest.mark.parametrize("name", ["a body in another package", "a body in a test"])
def test_other_projects_and_documents_may_give_away_a_little(name: str):
    case = BLOCKS[name]
    assert not blocks(case, material=MATERIAL_SHARE / 2)
    assert blocks(case, material=MATERIAL_SHARE)
