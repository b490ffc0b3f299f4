import re
import subprocess
from pathlib import Path

import pytest

from pipeline.task.shards import read_tasks
from tests.pipeline.commands.conftest import (
    LIBRARY,
    Regrow,
    entry,
    processes_naming,
    write_tree,
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[repo]]\nname = "a"\nnonsense = 1\n', "bad.toml:3: repo.nonsense: unknown key"),
        ('[[repo]]\nname = "a"\nlicence = 3\n', "bad.toml:3: repo.licence: "),
        ("[[repo]\n", "bad.toml:1: "),
    ],
)
def test_a_fault_in_the_manifest_is_one_line_with_file_line_and_key(
    text: str, said: str, regrow: Regrow, tmp_path: Path
):
    (tmp_path / "bad.toml").write_text(text)
    done = regrow("generate", tmp_path / "bad.toml", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--kinds", "class,toy"),
            "error: --kinds: 'toy', expected some of function, function group,",
        ),
        (("--size", "huge"), "error: --size: 'huge', expected some of small, medium, large"),
    ],
)
def test_a_kind_or_size_that_is_none_is_one_line(
    options: tuple[str, str], said: str, tiny_manifest: Path, regrow: Regrow, tmp_path: Path
):
    done = regrow("generate", tiny_manifest, "--out", tmp_path / "run", *options)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


# Name -> (suite, what the one line says).
BAD_SUITES = {
    "untested": ("", "baseline: no_tests"),
    "red": (
        """\
        def test_a():
            assert 0

        def test_b():
            pass

        def test_c():
            1 / 0
        """,
        "baseline: red: 1 of 3",
    ),
    "hanging": (
        """\
        import time

        def test_a():
            time.sleep(900)
        """,
        "baseline: wall",
    ),
    "forking": (
        """\
        import os

        def test_a():
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        """,
        # On a machine too busy to look, the clock ends it.
        "baseline: (processes|wall):",
    ),
    "hungry": (
        """\
        import os, time

        def test_a():
            for _ in range(3):
                if os.fork() == 0:
                    held = bytearray(3 * 2**30 // 2)
                    time.sleep(60)
            held = bytearray(3 * 2**30 // 2)
            time.sleep(60)
        """,
        "baseline: memory",
    ),
    "talking": (
        """\
        import os

        def test_a(capfd):
            with capfd.disabled():
                for _ in range(2**10):
                    os.write(1, b"x" * 2**20)
        """,
        "baseline: output",
    ),
}


@pytest.fixture(scope="module")
def bad_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of bad Repos around a good one."""
    folder = tmp_path_factory.mktemp("many")
    text = ""
    for name, (suite, _) in BAD_SUITES.items():
        files = {f"{name}.py": "def one():\n    return 1\n"}
        write_tree(folder / name, files | ({"test_it.py": suite} if suite else {}))
        # Short for the one that runs into it; long enough for the others on a busy machine.
        text += entry(name, f'path = "{name}"', wall_s=0.2 if name == "hanging" else 3.0)
    write_tree(folder / "tiny", LIBRARY)
    write_tree(folder / "cloned", LIBRARY)
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *command]
        subprocess.run(git, cwd=folder / "cloned", check=True)
    text += entry("tiny", 'path = "tiny"')
    text += entry("lost", f'git = "{folder}/cloned"\ncommit = "{"0" * 40}"')
    text += entry("away", f'git = "http://127.0.0.1:9/none.git"\ncommit = "{"1" * 40}"')
    text += entry("forged", f'sdist = "iniconfig==2.0.0"\nsha256 = "{"2" * 64}"')
    (folder / "many.toml").write_text(text)
    return folder / "many.toml"


def test_each_bad_repo_is_one_line_and_costs_the_others_nothing(
    bad_sources: Path, tiny_run: Path, regrow: Regrow, tmp_path: Path
):
    done = regrow("generate", bad_sources, "--out", tmp_path, "--json", "--runner", "plain")
    assert done.returncode == 2, done.stderr
    expected = {name: said for name, (_, said) in BAD_SUITES.items()} | {
        "lost": "fetch: no_such_commit",
        "away": "fetch: unreachable",
        "forged": "fetch: wrong_hash",
    }
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for name, said in expected.items():
        mine = [line for line in lines if line.startswith(f"error: {name}: ")]
        assert len(mine) == 1, (name, lines)
        assert re.search(said, mine[0])
    assert len(lines) == len(expected)
    assert {task.id for task in read_tasks(tmp_path)} == {task.id for task in read_tasks(tiny_run)}
    assert not processes_naming(str(tmp_path))
