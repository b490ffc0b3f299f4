import pytest
import torch

from trainer.draw import BLOCK, draw, uniforms

torch.set_num_threads(1)


@pytest.mark.parametrize("vocabulary", [2, 5, BLOCK, 3 * BLOCK + 7])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_as_often_as_their_probability_says(
    vocabulary: int, temperature: float
) -> None:
    logits_V = 3 * torch.randn(vocabulary, generator=torch.Generator().manual_seed(1))
    # Numbers evenly spread: each token is drawn within one of its share.
    even_B = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    ids_B, logprobs_B = draw(logits_V.expand(4000, -1), even_B, temperatures=[temperature] * 4000)
    expected_V = (logits_V / temperature).softmax(dim=-1)
    counts_V = torch.bincount(ids_B, minlength=vocabulary)
    assert (counts_V - 4000 * expected_V).abs().max() < 1.01
    torch.testing.assert_close(logprobs_B, expected_V.log()[ids_B])


def test_at_temperature_0_the_likeliest_token_comes_with_its_log_probability_at_1() -> None:
    logits_BV = torch.tensor([[0.0, 2.0, 1.0], [0.0, 2.0, 1.0]])
    uniform_B = torch.tensor([0.999, 0.999], dtype=torch.float64)
    ids_B, logprobs_B = draw(logits_BV, uniform_B, temperatures=[0.0, 1.0])
    assert ids_B.tolist() == [1, 2]
    torch.testing.assert_close(logprobs_B, logits_BV[0].log_softmax(dim=-1)[ids_B])


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_a_token_that_cannot_be_is_never_drawn(number: float) -> None:
    logits_BV = torch.full((1, 3 * BLOCK), -torch.inf)
    logits_BV[0, [70, 300]] = torch.tensor([0.0, 0.1])
    ids_B, logprobs_B = draw(
        logits_BV, torch.tensor([number], dtype=torch.float64), temperatures=[1.0]
    )
    assert ids_B.item() == (300 if number else 70)
    assert logprobs_B.isfinite().all()


def test_a_row_is_drawn_the_same_among_others() -> None:
    logits_BV = torch.randn(40, 600, generator=torch.Generator().manual_seed(2))
    uniform_B, temperatures = uniforms(3, 40), [0.5, 1.0, 0.0, 1.5] * 10
    together = draw(logits_BV, uniform_B, temperatures=temperatures)
    for row in range(40):
        alone = draw(
            logits_BV[row : row + 1], uniform_B[row : row + 1], temperatures=[temperatures[row]]
        )
        assert [it.item() for it in alone] == [it[row].item() for it in together]


def test_the_numbers_of_a_request_do_not_depend_on_how_many_are_asked_for() -> None:
    assert torch.equal(uniforms(5, 100)[:7], uniforms(5, 7))
    assert not torch.equal(uniforms(6, 7), uniforms(5, 7))
