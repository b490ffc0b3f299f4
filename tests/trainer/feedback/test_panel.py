import json
from dataclasses import replace

from tests.pipeline.model_server import hangs_up, model_server, status
from tests.trainer.feedback.test_judge import ONE, QUICK, answers, entry
from trainer.feedback.judge import JudgeConfig
from trainer.feedback.panel import SKIPPED, judge_all

EPISODES = [replace(ONE, id=f"0-task.{n}", number=n) for n in range(4)]


def test_all_episodes_are_judged_some_at_once_and_each_by_its_own_votes() -> None:
    with model_server() as server:
        server.answer = lambda _: json.dumps({"findings": [entry()]})
        config = JudgeConfig(url=server.url, model="judge-1", jobs=3)
        judged = judge_all(EPISODES, config=config)
    assert [*judged.findings] == [it.id for it in EPISODES]
    assert [len(it) for it in judged.findings.values()] == [1] * 4
    assert judged.unjudged == {}
    assert len(server.asked) == 12


def test_a_judge_that_is_down_is_asked_no_more_and_gives_no_verdict() -> None:
    with model_server() as server:
        server.script += [*[answers()] * 3, *[status(503), hangs_up] * 20]
        config = JudgeConfig(url=server.url, model="judge-1", jobs=1, patience=QUICK)
        judged = judge_all(EPISODES, config=config)
    assert judged.findings == {"0-task.0": ()}
    first, *others = judged.unjudged.values()
    assert [*judged.unjudged] == ["0-task.1", "0-task.2", "0-task.3"]
    assert "asked 3 times" in first
    assert "\n" not in first
    assert others == [SKIPPED] * 2
    assert len(server.asked) == 3 + QUICK.max_tries


def test_a_judge_that_refuses_one_episode_is_asked_about_the_others() -> None:
    with model_server() as server:
        server.script += [status(400), *[answers(entry())] * 9]
        config = JudgeConfig(url=server.url, model="judge-1", jobs=1, patience=QUICK)
        judged = judge_all(EPISODES, config=config)
    assert [*judged.unjudged] == ["0-task.0"]
    assert "status 400" in judged.unjudged["0-task.0"]
    assert [len(it) for it in judged.findings.values()] == [1] * 3


def test_an_episode_that_does_not_count_is_neither_judged_nor_missed() -> None:
    failed = replace(ONE, reward=None, ending="infra")
    judged = judge_all([failed], config=JudgeConfig(url="http://127.0.0.1:9/v1", model="judge-1"))
    assert (judged.findings, judged.unjudged) == ({}, {})
