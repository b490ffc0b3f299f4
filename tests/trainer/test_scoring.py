from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.trainer.samples import segment
from trainer.scoring import measure_logprobs, score
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)

SEGMENTS = [
    segment(0, spans=[(10, 20), (30, 44)], length=50),
    segment(1, spans=[(4, 9)], length=9),
    segment(2, spans=[], length=12),
]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampled_tokens_have_the_log_probability_of_the_whole_softmax_and_others_none(
    temperature: float,
) -> None:
    model = random_model(tiny_config("dense"), seed=0)
    measured = measure_logprobs(model, SEGMENTS, temperature=temperature, chunk=7)
    for seg, found in zip(SEGMENTS, measured, strict=True):
        ids = torch.from_numpy(seg.ids)
        with torch.no_grad():
            logits_LV = model(input_ids=ids[None], use_cache=False).logits[0].float()
        logp_LV = (logits_LV / temperature).log_softmax(-1)
        every = logp_LV[torch.arange(len(ids) - 1), ids[1:]].numpy()
        expected = np.where(seg.sampled, np.concatenate([[0], every]), 0)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_spans_are_where_the_segments_stand() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    scores = score(model, SEGMENTS, temperature=1.0, chunk=7)
    for seg, span in zip(SEGMENTS, scores.spans, strict=True):
        assert np.array_equal(scores.ids_T[span], seg.ids)
        assert np.array_equal(scores.sampled_T[span], seg.sampled)
        assert np.array_equal(scores.rollout_T[span], seg.logprobs)
    assert len(scores.entropies_S) == scores.sampled_T.sum() == 29


def test_a_segment_that_begins_with_a_sampled_token_is_refused() -> None:
    made = segment(0, spans=[(4, 9)], length=9)
    spoilt = replace(made, sampled=np.ones(9, dtype=np.bool_))
    with pytest.raises(ValueError, match="begins with a sampled token, expected a prompt"):
        score(random_model(tiny_config("dense"), seed=0), [spoilt], temperature=1.0, chunk=7)
