"""What is left of an Episode, however it ends; and what it says of the policy is true."""

import numpy as np
import pytest
import torch

from tests.trainer.families import QWEN, family
from tests.trainer.scripted import Rooms, ScriptedEngine, echo, in_turn, text_of, tiny_chat
from tests.trainer.test_rollout import FULL, run, sums_up
from trainer.chat import Chat, ChatConfig
from trainer.feedback.scan import scan
from trainer.feedback.targets import Feedback
from trainer.generate import LocalEngine
from trainer.records import Episode
from trainer.roll import Rolled, make_samples
from trainer.rollout import RolloutConfig, Try, run_episodes
from trainer.scoring import measure_logprobs
from trainer.summary import ASK
from trainer.template import ChatTemplateError
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)


def test_the_reward_reaches_every_segment():
    (episode,) = run(sums_up, "one", **FULL)
    rolled = Rolled(
        episodes=(episode,),
        feedback={episode.id: Feedback(findings=(), hinted=(), targets={})},
        canaries=(),
    )
    samples = make_samples(rolled, {episode.id: 0.5})
    assert [(it.id, it.advantage) for it in samples] == [("0-room.0/0", 0.5), ("0-room.0/1", 0.5)]
    assert all(it.segment.sampled.any() for it in samples)


def test_a_summary_counts_as_a_turn_and_none_comes_after_the_last():
    (episode,) = run(sums_up, "one", **FULL)
    num_turns = len(episode.segments[0].replies)
    (stopped,) = run(sums_up, "one", max_turns=num_turns, **FULL)
    assert stopped.ending == "out_of_turns"
    assert [len(it.replies) for it in stopped.segments] == [num_turns]
    assert stopped.reward == num_turns - 1


def test_a_summary_is_cut_off_by_the_budget_of_the_trainer_like_any_message():
    (episode,) = run(sums_up, "one", **FULL)
    sampled = int(episode.segments[0].sampled.sum())
    (cut,) = run(sums_up, "one", max_episode_tokens=sampled, **FULL)
    assert (cut.ending, cut.reward, len(cut.segments)) == ("cut", None, 1)


def test_a_summary_has_the_room_of_a_message():
    engine = ScriptedEngine(sums_up)
    run(engine, "one", **FULL)
    asked = [it for (it,) in engine.asked if ASK in text_of(it.ids)]
    assert [it.max_new_tokens for it in asked] == [FULL["max_new_tokens"]]


def test_a_summary_that_fills_the_next_context_ends_the_episode_with_its_work_graded():
    def script(context: str) -> str:
        return "a" * 500 if ASK in context else echo("a" * 80)

    (episode,) = run(script, "one", max_context_tokens=1200, max_new_tokens=400)
    assert episode.ending == "overlong"
    assert episode.reward == sum(len(it.calls) for part in episode.segments for it in part.replies)
    assert all(it.replies for it in episode.segments)


def stops(_: str) -> str:
    raise KeyboardInterrupt


def test_an_interrupt_leaves_no_environment_open():
    world = Rooms()
    with pytest.raises(KeyboardInterrupt):
        run(stops, "one", "two", world=world)
    assert len(world.draws) == 2
    assert world.open_now == []


def test_a_template_that_will_not_do_is_no_failure_of_a_machine():
    # It shows one result, and not two.
    lossy = QWEN.replace("message.content + '\\n</tool_r", "messages[2].content + '\\n</tool_r")
    world = Rooms()
    episodes = run_episodes(
        [Try(group="g", number=0, prompt="one")],
        world=world,
        engine=ScriptedEngine(in_turn(echo("a", "b"))),
        chat=Chat(family(lossy), ChatConfig()),
        config=RolloutConfig(),
        seed=1,
    )
    with pytest.raises(ChatTemplateError, match="leaves out the result of a call"):
        list(episodes)
    assert world.open_now == []


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        (echo("a").replace("echo", "shout"), ["unknown_tool"]),
        ("<tool_call>{oops</tool_call>", ["malformed_arguments"]),
        (echo("a"), []),
        ('{"name": "echo", "arguments": {}}', ["wrong_call_format"]),
    ],
)
def test_detectors_find_in_an_episode_what_the_policy_did_wrong(said: str, kinds: list[str]):
    (episode,) = run(in_turn(said, "Done."), "one")
    found = [it for it in scan(episode) if it.reply == 0]
    assert [it.kind for it in found] == kinds
    segment = episode.segments[0]
    for finding in found:
        assert segment.sampled[finding.start : finding.end].all()
        assert said in text_of(segment.ids[finding.start : finding.end])


def test_detectors_find_nothing_where_results_are_missing_as_a_machine_failed():
    (episode,) = run(in_turn(echo("a").replace("echo", "shout")), "breaks")
    assert episode.ending == "infra"
    assert scan(episode) == ()


def sample_with_a_model(*, seed: int) -> list[Episode]:
    """Run Episodes of a random model; it now and then writes the mark of a call."""
    episodes = run_episodes(
        [Try(group="g", number=it, prompt="one") for it in range(3)],
        world=Rooms(),
        engine=LocalEngine(random_model(tiny_config("dense"), seed=1)),
        chat=tiny_chat(),
        config=RolloutConfig(max_turns=4, max_new_tokens=150, max_context_tokens=1500),
        seed=seed,
    )
    return sorted(episodes, key=lambda it: it.number)


@pytest.fixture(scope="module")
def sampled() -> list[Episode]:
    return sample_with_a_model(seed=3)


def test_the_trainer_finds_the_log_probabilities_that_the_engine_sampled_with(
    sampled: list[Episode],
):
    segments = [part for it in sampled for part in it.segments]
    assert max(len(it.replies) for it in segments) > 1
    model = random_model(tiny_config("dense"), seed=1)
    with torch.no_grad():
        found = measure_logprobs(model, segments, temperature=1.0)
    for segment, logprobs in zip(segments, found, strict=True):
        np.testing.assert_allclose(logprobs, segment.logprobs, atol=1e-5)


def test_the_same_seed_gives_the_same_episodes_and_another_one_others(sampled: list[Episode]):
    first, again, other = (
        [[part.ids.tolist() for part in it.segments] for it in episodes]
        for episodes in (sampled, sample_with_a_model(seed=3), sample_with_a_model(seed=4))
    )
    assert first == again
    assert first != other
