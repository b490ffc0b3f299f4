"""A judge that is asked over real HTTP while a run goes on."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.pipeline.model_server import model_server
from tests.trainer.toy import run_toy, toy_config
from trainer.episode_shards import Entry, read_entries
from trainer.trackers import read_metrics

HINT = "Answer with small letters alone, and with as many as there is room for."
SHOWN = re.compile(
    r"^## Message 1\n(?P<fence>=== \w+ ===)\n(?P<text>.*?)\n(?P=fence)$", re.MULTILINE | re.DOTALL
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def finds_fault(request: str) -> str:
    """Quote the first message of a transcript, as a judge does that likes none."""
    shown = SHOWN.search(request)
    assert shown is not None
    return json.dumps({"findings": [{"message": 1, "quote": shown["text"], "hint": HINT}]})


def numbers(folder: Path) -> dict[str, float]:
    (line,) = read_metrics(folder)
    return {name: it for name, it in line.items() if not name.endswith("_s")}


def entries(folder: Path) -> list[Entry]:
    (path,) = (folder / "episodes").iterdir()
    return list(read_entries(path))


def judge_at(url: str, **more: object) -> dict[str, object]:
    quick = {"timeout_s": 10.0, "max_tries": 2, "pause_s": 0.0}
    return {"url": url, "model": "judge-1", "patience": quick} | more


def test_what_a_judge_finds_over_http_is_kept_hinted_at_and_distilled(tmp_path: Path) -> None:
    with model_server() as server:
        server.answer = finds_fault
        run_toy(toy_config(steps=1, judge=judge_at(server.url)), tmp_path)
    found = [it for entry in entries(tmp_path) for it in entry.findings if it.kind == "judged"]
    hints = [
        target.hint
        for entry in entries(tmp_path)
        for targets in entry.targets.values()
        for target in targets
        if target.kind == "judged"
    ]
    counted = numbers(tmp_path)
    assert len(server.asked) == 3 * len(entries(tmp_path))
    assert 0 < len(found) == counted["fired/judged"] == counted["hinted/judged"]
    assert set(hints) == {HINT}
    assert len(hints) == counted["targets/judged"]
    assert counted["kl_tokens/judged"] > 0
    assert counted["rate/judged"] == len(found) / counted["replies"]
    assert counted["unjudged"] == 0


def test_a_judge_that_is_down_is_one_line_and_a_count_and_changes_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with model_server() as server:
        url = server.url
    run_toy(toy_config(steps=1, judge=judge_at(url)), tmp_path / "down")
    said = capsys.readouterr()
    run_toy(toy_config(steps=1), tmp_path / "none")
    (line,) = said.err.splitlines()
    assert line.startswith(f"step 1: 6 episodes of this rank are not judged: {url}/chat/comp")
    assert "asked 2 times" in line
    assert said.out.rstrip().endswith("not judged 6")
    down, none = numbers(tmp_path / "down"), numbers(tmp_path / "none")
    assert (down.pop("unjudged"), none.pop("unjudged")) == (6, 0)
    assert down == none
