"""Try from where a solver sits to fetch anything at all: index, code host, proxy, neighbours."""

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.agent.attempt import NO_LITTER, Litter, solver_bench
from pipeline.agent.tools import Answer, Call
from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.sandbox.view import HOME
from pipeline.task.changed import Desk
from pipeline.task.record import Task
from pipeline.task.suite import TEMPORARY, TREE

SCRIPT = Path(__file__).parent / "inside" / "fetches.py"
TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What is worth a try.

    Example: `Targets(index=package_index())`.
    """

    # URL of the package index that serves the project.
    index: str
    code_host: str = "https://github.com/"
    # Connected to without a name: public resolvers, the metadata services of clouds, gateways.
    addresses: tuple[tuple[str, int], ...] = (
        *(("1.1.1.1", 443), ("8.8.8.8", 443), ("2606:4700:4700::1111", 443)),
        *(("169.254.169.254", 80), ("fd00:ec2::254", 80), ("100.100.100.200", 80)),
        *(("172.17.0.1", 80), ("10.0.0.1", 80), ("192.168.0.1", 80), ("10.0.2.2", 80)),
    )
    # Asked over UDP.
    name_servers: tuple[str, ...] = ("1.1.1.1", "8.8.8.8", "127.0.0.53", "127.0.0.11")
    # Of the machine itself: shells, mirrors, proxies, databases, engines, notebooks.
    ports: tuple[int, ...] = (
        *(21, 22, 53, 80, 443, 873, 1080, 2375, 2376, 3000, 3128, 3141, 4873, 5000, 5432),
        *(6379, 7890, 8000, 8001, 8080, 8081, 8118, 8443, 8888, 9000, 9050, 9418, 10809),
    )
    # Where sockets of others may lie.
    folders: tuple[str, ...] = ("/run", "/var/run", TEMPORARY, TREE, "/srv", HOME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A way out of the sandbox.

    Example: `Reached(way="loopback", target="127.0.0.1:3128", detail="… accepts connections")`.
    """

    # `name`, `address`, `name server`, `url`, `loopback`, `socket`, `proxy`, `interface`,
    # `git remote`, or a program.
    way: str
    target: str
    # What came back.
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What came of all tries; a sandbox is closed when nothing was reached."""

    num_tries: int
    reached: tuple[Reached, ...]


def probe_fetches(
    task: Task, *, desk: Desk, targets: Targets, litter: Litter = NO_LITTER
) -> Probed:
    """Try all cheap fetches at once, in a command of an agent that works at a Task.

    Nothing may be reached. What is found is the same for all Tasks of a Repo on one back end, so
    that once for each is enough.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: nothing was learnt.
    """
    code, asked = SCRIPT.read_text(encoding="utf-8"), json.dumps(_by_way(targets))
    # Isolated from what the Environment runs when its interpreter starts.
    file = f"{TEMPORARY}/fetches.py"
    command = f"cat >{file} <<'END'\n{code}END\npython -I -S {file} <<'END'\n{asked}\nEND"
    call = Call(
        thought="Can anything be fetched?",
        tool="run_command",
        arguments={"command": command, "timeout_s": TIMEOUT_S},
    )
    with solver_bench(task, desk=desk, litter=litter) as workbench:
        return _read(workbench.use(call))


def _by_way(targets: Targets) -> dict[str, object]:
    page, host = f"{targets.index.rstrip('/')}/six/", targets.code_host
    return {
        "name": [urlsplit(url).hostname for url in (page, host)],
        "address": targets.addresses,
        "name server": targets.name_servers,
        "url": [page, host],
        "loopback": targets.ports,
        "socket": targets.folders,
        # What is not installed cannot fetch.
        "program": [
            ("pip", "six"),
            ("uv", "six"),
            ("git", f"{host}python/cpython"),
            ("curl", page),
            ("wget", page),
        ],
    }


def _read(answer: Answer) -> Probed:
    """Read what the script printed.

    Raises:
        SandboxBrokenError: it did not get to the end.
    """
    line = answer.output.partition("\n")[0]
    try:
        found = json.loads(line) if answer.ok else {}
        reached = tuple(
            Reached(way=way, target=target, detail=detail)
            for way, target, detail in found["reached"]
        )
        return Probed(num_tries=found["num_tries"], reached=reached)
    except (ValueError, KeyError) as error:
        raise SandboxBrokenError(f"the probe did not end: {answer.output[-300:]!r}") from error
