"""A sandbox is closed, and a way out of one is found where there is one."""

import http.server
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.agent.attempt import Litter
from pipeline.index import package_index
from pipeline.probe.fetches import SCRIPT, Targets, probe_fetches
from pipeline.task.grade import Desk
from pipeline.task.record import Task
from tests.pipeline.conftest import TaskOf

NOTHING = {
    way: [] for way in ("name", "address", "name server", "url", "loopback", "socket", "program")
}


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


def test_nothing_can_be_fetched_from_where_a_solver_sits(task: Task, pantry_desk: Desk):
    probed = probe_fetches(task, desk=pantry_desk, targets=Targets(index=package_index()))
    assert probed.reached == ()
    assert probed.num_tries > 50


def test_a_work_tree_that_knows_its_origin_gives_it_away(task: Task, pantry_desk: Desk):
    config = b'[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/a.git\n'
    git = {
        ".git/HEAD": b"ref: refs/heads/main\n",
        ".git/config": config,
        ".git/objects/none": b"",
        ".git/refs/none": b"",
    }
    targets = Targets(index=package_index())
    probed = probe_fetches(task, desk=pantry_desk, targets=targets, litter=Litter(tree=git))
    assert [(it.way, it.detail) for it in probed.reached] == [
        ("git remote", "https://example.org/a.git")
    ]


def run_script(asked: dict[str, object], folder: Path, **variables: str) -> list[list[str]]:
    """Run the script on this machine, which is open as far as it goes."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT)],
        input=json.dumps({**NOTHING, **asked}),
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    reached: list[list[str]] = json.loads(done.stdout)["reached"]
    return reached


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_answers_is_found_by_address_url_and_listening_port(tmp_path: Path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    url = f"http://127.0.0.1:{port}/"
    reached = run_script({"address": [["127.0.0.1", port]], "url": [url]}, tmp_path)
    server.shutdown()
    server.server_close()
    ways = {(way, target) for way, target, _ in reached}
    found = {("address", f"127.0.0.1:{port}"), ("url", url), ("loopback", f"127.0.0.1:{port}")}
    assert found <= ways


def test_a_socket_that_somebody_listens_at_is_found(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "engine.sock"))
        listening.listen()
        reached = run_script({"socket": [str(tmp_path)]}, tmp_path)
    assert ["socket", str(tmp_path / "engine.sock"), "somebody listens"] in reached


def test_a_name_that_resolves_is_found(tmp_path: Path):
    reached = run_script({"name": ["localhost", "nowhere.invalid"]}, tmp_path)
    assert [target for way, target, _ in reached if way == "name"] == ["localhost"]


def test_a_proxy_in_the_environment_is_found(tmp_path: Path):
    reached = run_script({}, tmp_path, https_proxy="http://192.0.2.1:3128")
    [[_, _, detail]] = [it for it in reached if it[0] == "proxy"]
    assert "https_proxy" in detail
