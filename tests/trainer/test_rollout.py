"""Episodes run side by side; each token is put in once, and each ends in its own way."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.sandbox.protocol import SandboxStoppedError
from tests.pipeline.agent.test_written import MARKS
from tests.trainer.scripted import HEADER, Rooms, ScriptedEngine, echo, in_turn, text_of, tiny_chat
from trainer.engine import EngineError
from trainer.records import Episode
from trainer.rollout import RolloutConfig, Try, run_episodes
from trainer.summary import ASK, INTRODUCTION


def run(script: Any, *prompts: str, world: Rooms | None = None, **limits: Any) -> list[Episode]:
    """Run an Episode a prompt; they come back in order of number."""
    engine = script if isinstance(script, ScriptedEngine) else ScriptedEngine(script)
    episodes = run_episodes(
        [Try(group="0-room", number=it, prompt=name) for it, name in enumerate(prompts)],
        world=world or Rooms(),
        engine=engine,
        chat=tiny_chat(),
        config=RolloutConfig(**limits),
        seed=1,
    )
    return sorted(episodes, key=lambda it: it.number)


def test_what_is_trained_is_what_was_sampled_token_for_token():
    engine = ScriptedEngine(in_turn(echo("a"), echo("é", "c"), "Done."))
    (episode,) = run(engine, "one")
    (segment,) = episode.segments
    for asked, reply in zip(list(engine.asked), segment.replies, strict=True):
        # The context that was asked with is the one that is trained on.
        np.testing.assert_array_equal(asked[0].ids, segment.ids[: reply.start])
        said = engine.generate(asked)[0]
        np.testing.assert_array_equal(said.ids, segment.ids[reply.start : reply.end])
        np.testing.assert_array_equal(said.logprobs, segment.logprobs[reply.start : reply.end])
        assert text_of(segment.ids[reply.header : reply.start]) == HEADER
    assert len(segment.ids) == segment.replies[-1].end


def test_only_what_the_policy_said_is_trained():
    (episode,) = run(in_turn(echo("a"), "Done."), "one")
    (segment,) = episode.segments
    spans = [range(it.start, it.end) for it in segment.replies]
    sampled = [place for span in spans for place in span]
    assert np.flatnonzero(segment.sampled).tolist() == sampled
    assert not segment.logprobs[~segment.sampled].any()
    said = text_of(segment.ids[segment.sampled])
    assert said == f"{echo('a')}<|im_end|>Done.<|im_end|>"


def test_an_episode_keeps_each_call_with_what_came_back_and_the_tokens_that_it_is():
    (episode,) = run(in_turn(echo("a", "b"), "Done."), "one")
    assert (episode.id, episode.ending, episode.reward) == ("0-room.0", "finished", 2.0)
    assert (episode.verdict, episode.detail) == ("counted", "Done.")
    assert [it.name for it in episode.tools] == ["echo"]
    (segment,) = episode.segments
    first, last = segment.replies
    assert [it.text for it in first.results] == ["a", "b"]
    for call, text in zip(first.calls, "ab", strict=True):
        assert text_of(segment.ids[call.start : call.end]) == echo(text)
    assert (last.text, last.calls, last.version) == ("Done.", (), 3)


def test_a_malformed_call_is_told_so_and_the_others_of_its_message_are_carried_out():
    bad = "<tool_call>{oops</tool_call>"
    (episode,) = run(in_turn(bad + echo("b"), "Done."), "one")
    first = episode.segments[0].replies[0]
    assert [it.ok for it in first.results] == [False, True]
    assert first.results[0].text.startswith("malformed call: no JSON")
    assert (episode.ending, episode.reward) == ("finished", 1.0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=5))), max_size=4))
def test_no_episode_is_lost_to_what_the_policy_writes(said: list[list[str]]):
    words = ["".join(parts) for parts in said]
    (episode,) = run(in_turn(*words, "Done."), "kind")
    assert episode.ending == "finished"
    replies = [reply for it in episode.segments for reply in it.replies]
    assert all(len(it.calls) == len(it.results) for it in replies)


def test_an_environment_that_fails_ends_its_own_episode_and_no_other():
    world = Rooms()
    script = in_turn(echo("a"), "Done.")
    episodes = run(script, "one", "breaks", "shut", "ungraded", "two", world=world)
    assert [it.ending for it in episodes] == ["finished", "infra", "infra", "infra", "finished"]
    assert [it.reward for it in episodes] == [1.0, None, None, None, 1.0]
    assert episodes[1].detail == "OSError: no space left"
    assert episodes[2].segments == ()
    assert world.open_now == []


def test_an_engine_that_fails_is_no_result_and_leaves_no_environment_open():
    def down(_: str) -> str:
        raise EngineError("down")

    world = Rooms()
    with pytest.raises(EngineError, match="down"):
        run(down, "one", "two", world=world)
    assert len(world.draws) == 2
    assert world.open_now == []


def test_a_run_that_is_being_stopped_ends_no_episode():
    world = Rooms()
    with pytest.raises(SandboxStoppedError):
        run(in_turn(echo("a"), "Done."), "one", "stopping", world=world)
    assert world.open_now == []


def test_an_episode_that_is_left_early_leaves_no_environment_open():
    world = Rooms()
    episodes = run_episodes(
        [Try(group="g", number=it, prompt=str(it)) for it in range(2)],
        world=world,
        engine=ScriptedEngine(lambda context: "Done." if "Room 0" in context else echo("a")),
        chat=tiny_chat(),
        config=RolloutConfig(),
        seed=1,
    )
    assert next(episodes).number == 0
    assert world.open_now == ["1"]
    episodes.close()
    assert world.open_now == []


def test_turns_are_counted_and_the_work_of_one_that_has_no_more_is_graded():
    (episode,) = run(lambda _: echo("a"), "one", max_turns=3)
    assert (episode.ending, episode.reward) == ("out_of_turns", 3.0)
    assert len(episode.segments[0].replies) == 3


def test_an_episode_that_the_trainer_cuts_off_counts_for_nothing():
    (episode,) = run(lambda _: echo("a"), "one", max_episode_tokens=100)
    assert (episode.ending, episode.reward) == ("cut", None)
    assert "max_episode_tokens" in episode.detail


def test_a_long_result_is_shown_and_kept_from_its_beginning():
    (episode,) = run(in_turn(echo("a" * 100), "Done."), "one", max_shown_chars=10)
    (result,) = episode.segments[0].replies[0].results
    assert result.text == f"{'a' * 10}\n… 90 more characters"
    assert result.text in text_of(episode.segments[0].ids)


def test_a_message_that_is_cut_in_a_call_is_told_so():
    script = in_turn("x" * 20 + echo("a"), "Done.")
    (episode,) = run(script, "one", max_new_tokens=60)
    first = episode.segments[0].replies[0]
    assert first.stop == "length"
    assert first.results[0].text == "malformed call: the call has no end"
    assert "<|im_end|>" not in text_of(episode.segments[0].ids[first.start : first.end])
    assert text_of(episode.segments[0].ids[first.end :]).startswith("<|im_end|>\n")


def sums_up(context: str) -> str:
    if ASK in context:
        return "Said it " + str(context.count("<tool_response>")) + " times."
    return "Done." if context.count(INTRODUCTION) and context.count(HEADER) > 2 else echo("a" * 80)


FULL = {"max_context_tokens": 1500, "max_new_tokens": 200}


def test_a_full_context_is_summed_up_by_the_policy_and_the_episode_goes_on_from_that():
    (episode,) = run(sums_up, "one", **FULL)
    first, second = episode.segments
    summary = first.replies[-1]
    assert (summary.calls, summary.results) == ((), ())
    # The summary is trained as well, and nothing stands behind it.
    assert first.sampled[summary.start : summary.end].all()
    assert len(first.ids) == summary.end
    begun = text_of(second.ids[: second.replies[0].start])
    assert f"Room one.<|im_end|>\n<|im_start|>user\n{INTRODUCTION}{summary.text}" in begun
    assert episode.ending == "finished"
    assert episode.reward == sum(len(it.calls) for part in episode.segments for it in part.replies)


def test_no_context_grows_beyond_its_limit():
    engine = ScriptedEngine(sums_up)
    (episode,) = run(engine, "one", **FULL)
    assert all(len(it.ids) <= 1500 for it in episode.segments)
    assert all(len(it.ids) + it.max_new_tokens <= 1500 for (it,) in engine.asked)


def test_results_that_leave_no_room_for_a_summary_are_shown_shorter_and_kept_as_shown():
    def script(context: str) -> str:
        if INTRODUCTION in context:
            return "Done."
        return "All is said." if ASK in context else echo("a" * 700)

    (episode,) = run(script, "one", max_context_tokens=2200, max_new_tokens=800)
    reply = episode.segments[0].replies[0]
    assert reply.results[0].text == f"{'a' * 100}\n… 600 more characters"
    assert reply.results[0].text in text_of(episode.segments[0].ids)
    assert episode.ending == "finished"


def test_a_full_context_ends_the_episode_where_no_summary_is_wanted():
    (episode,) = run(sums_up, "one", on_full="end", **FULL)
    assert episode.ending == "overlong"
    assert episode.reward == len(episode.segments[0].replies)


def test_a_prompt_that_does_not_fit_is_overlong_and_asks_nothing():
    engine = ScriptedEngine(in_turn("Done."))
    (episode,) = run(engine, "one", max_context_tokens=20, max_new_tokens=10)
    assert (episode.ending, episode.segments, engine.asked) == ("overlong", (), [])


def test_those_that_run_ask_together_each_with_a_seed_of_its_own_that_lasts():
    def script(context: str) -> str:
        return "Done." if "Room a" in context else in_turn(echo("x"), "Done.")(context)

    engine, again = ScriptedEngine(script), ScriptedEngine(script)
    run(engine, "a", "b", "b")
    assert [len(asked) for asked in engine.asked] == [3, 2]
    seeds = [it.seed for asked in engine.asked for it in asked]
    assert len(set(seeds)) == 5
    run(again, "a", "b", "b")
    assert [it.seed for asked in again.asked for it in asked] == seeds


def test_the_tries_of_a_group_have_the_same_environment():
    world = Rooms()
    run(in_turn("Done."), "one", "one", world=world)
    assert world.draws == ["0-room", "0-room"]


def test_a_message_that_may_be_as_long_as_its_context_is_refused():
    with pytest.raises(ValueError, match="max_new_tokens 100 of max_context_tokens 100"):
        RolloutConfig(max_new_tokens=100, max_context_tokens=100)
