from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from tests.trainer.feedback.episodes import call, episode, fault, says
from tests.trainer.feedback.samples import BY_KIND, LOST, SILENT
from trainer.feedback.targets import Feedback, TargetsConfig, find_targets, give_feedback
from trainer.records import Episode, Finding, Ids

CONFIG = TargetsConfig()
UNKNOWN = says("I look.", call("reed_file", "there is no tool", ok=False))
END = says("There is nothing to read, so the change is not made.")
MANY = episode(UNKNOWN, says("", call("reed_files", "there is no tool", ok=False)), END)


class Bytes:
    """A message is its bytes, a token each."""

    def hint(self, text: str) -> Ids:
        return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)


CHAT = Bytes()


def siblings(one: Episode, num: int) -> list[Episode]:
    return [replace(one, id=f"0-task.{n}", number=n) for n in range(num)]


def test_a_target_is_the_whole_message_with_the_hint_as_tokens() -> None:
    (target,) = find_targets(BY_KIND["unknown_tool"], chat=CHAT, config=CONFIG)[0]
    reply = BY_KIND["unknown_tool"].segments[0].replies[target.reply]
    assert (target.start, target.end) == (reply.start, reply.end)
    assert bytes(target.hint_ids.astype(np.uint8)).decode() == target.hint
    assert target.hint.startswith("Reminder: only the tools")


def test_a_target_can_be_the_tokens_at_fault_alone() -> None:
    config = TargetsConfig(span="fault")
    one = episode(UNKNOWN, END)
    (target,) = find_targets(one, chat=CHAT, config=config)[0]
    made = one.segments[0].replies[0].calls[0]
    assert (target.start, target.end) == (made.start, made.end)


@pytest.mark.parametrize("kind", BY_KIND)
def test_each_kind_becomes_a_target_on_sampled_tokens(kind: str) -> None:
    one = BY_KIND[kind]
    config = TargetsConfig(kinds=(kind,))
    (target,) = find_targets(one, chat=CHAT, config=config)[0]
    assert target.kind == kind
    assert one.segments[0].sampled[target.start : target.end].all()


def test_of_one_reply_the_worst_finding_is_distilled() -> None:
    both = says("", LOST, call("reed_file", "there is no tool", ok=False))
    (target,) = find_targets(episode(both), chat=CHAT, config=CONFIG)[0]
    assert target.kind == "unknown_tool"


def test_a_kind_that_is_switched_off_gives_way_to_the_next() -> None:
    both = says("", LOST, call("reed_file", "there is no tool", ok=False))
    config = TargetsConfig(kinds=("edit_without_match",))
    (target,) = find_targets(episode(both), chat=CHAT, config=config)[0]
    assert target.kind == "edit_without_match"


def test_targets_stand_with_their_segments() -> None:
    one = episode(UNKNOWN, says("So far.", is_summary=True), UNKNOWN, END)
    found = find_targets(one, chat=CHAT, config=CONFIG)
    assert {segment: [it.reply for it in targets] for segment, targets in found.items()} == {
        0: [0],
        1: [0],
    }


def test_siblings_that_err_alike_share_the_cap_of_the_kind() -> None:
    feedback = give_feedback(siblings(MANY, 8), chat=CHAT, config=CONFIG)
    assert [sum(map(len, it.targets.values())) for it in feedback.values()] == [1] * 4 + [0] * 4
    assert all(len(it.hinted) == 2 for it in feedback.values())


def test_the_cap_of_the_prompt_holds_over_all_kinds() -> None:
    config = TargetsConfig(max_per_prompt=3)
    mixed = [*siblings(MANY, 2), replace(BY_KIND["empty_message"], id="0-task.2", number=2)]
    feedback = give_feedback(mixed, chat=CHAT, config=config)
    kinds = [target.kind for it in feedback.values() for target in it.targets.get(0, ())]
    assert sorted(kinds) == ["empty_message", "unknown_tool", "unknown_tool"]


def places(feedback: Mapping[str, Feedback]) -> list[tuple[str, int, int, str]]:
    """Where each Target is."""
    return sorted(
        (name, segment, target.reply, target.kind)
        for name, it in feedback.items()
        for segment, targets in it.targets.items()
        for target in targets
    )


def test_other_groups_have_caps_of_their_own() -> None:
    other = [replace(it, id=f"1-{it.id}", group="1-task") for it in siblings(MANY, 4)]
    feedback = give_feedback([*siblings(MANY, 4), *other], chat=CHAT, config=CONFIG)
    assert sum(len(part) for it in feedback.values() for part in it.targets.values()) == 8


def test_which_are_kept_does_not_depend_on_the_order_of_the_episodes() -> None:
    group = siblings(MANY, 6)
    one = give_feedback(group, chat=CHAT, config=CONFIG)
    other = give_feedback(group[::-1], chat=CHAT, config=CONFIG)
    assert places(one) == places(other)
    assert sorted(places(one)) == [(f"0-task.{n}", 0, 0, "unknown_tool") for n in range(4)]


def test_faults_of_others_tampering_and_what_does_not_count_have_no_targets() -> None:
    for one in (
        episode(says("", fault("read_file", path="a.py"))),
        replace(MANY, verdict="tampered"),
        replace(MANY, reward=None, ending="infra"),
    ):
        assert find_targets(one, chat=CHAT, config=CONFIG) == {}


def test_what_a_judge_found_competes_by_its_severity() -> None:
    text = "Read the caller before the change."
    finding = Finding(
        segment=0, reply=1, kind="judged", start=0, end=1, evidence="", severity=0.8,
        facts={"hint": text},
    )  # fmt: skip
    one = BY_KIND["tool_error_ignored"]
    feedback = give_feedback([one], chat=CHAT, config=CONFIG, judged={one.id: (finding,)})
    targets = feedback[one.id].targets[0]
    assert [it.kind for it in targets] == ["edit_without_match", "judged"]
    assert targets[1].hint == text
    assert SILENT.text in one.segments[0].replies[1].text


def test_what_a_judge_found_where_the_environment_failed_is_dropped_and_nothing_else() -> None:
    one = episode(says("", fault("read_file", path="a.py")), UNKNOWN, END)
    hints = ("Read the file in parts.", "List the tools first.", "Name what is left to do.")
    judged = tuple(
        Finding(
            segment=0, reply=number, kind="judged", start=0, end=1, evidence="", severity=0.55,
            facts={"hint": text},
        )
        for number, text in enumerate(hints)
    )  # fmt: skip
    said = give_feedback([one], chat=CHAT, config=CONFIG, judged={one.id: judged})[one.id]
    assert [(it.reply, it.kind) for it in said.findings] == [
        (0, "environment_fault"),
        (1, "unknown_tool"),
        (1, "judged"),
        (2, "judged"),
    ]
    assert [(it.reply, it.kind) for it in said.hinted] == [(1, "unknown_tool"), (2, "judged")]


def test_a_kind_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValidationError, match="no detector unknown_tols, expected some of edit_"):
        TargetsConfig(kinds=("unknown_tols",))
