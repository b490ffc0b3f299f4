from pathlib import Path

import pytest

from trainer.bench.speed.measure import measure


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    report = measure(tmp_path_factory.mktemp("bench"), quick=True)
    return {claim.claim: claim.figure for claim in report.claims}


def test_without_a_peer_nothing_is_claimed_about_it(claims: dict[str, float]) -> None:
    assert not any("TRL" in claim for claim in claims)


def test_the_cost_of_hints_is_measured(claims: dict[str, float]) -> None:
    assert 0 < claims["cost of hints, share of a long step, tiny"] < 1


def test_the_loss_holds_what_its_chunk_takes_however_many_tokens_there_are(
    claims: dict[str, float],
) -> None:
    assert claims["peak memory of the loss over what its chunk takes, 128k vocabulary"] < 1.1
    assert claims["the same peak over that of an eighth of the tokens"] < 1.1


def test_a_peer_without_a_python_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no bin/python in it, expected a virtual environment"):
        measure(tmp_path / "bench", quick=True, peer=tmp_path)
    assert not (tmp_path / "bench").exists()
