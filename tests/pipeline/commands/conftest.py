"""Run `regrow` as a user does, on small repositories made for the test."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Regrow = Callable[..., subprocess.CompletedProcess[str]]

# A library with five features, a shared helper and one flaky test. No two features are named in one
# line, so that they can be deleted together.
LIBRARY = {
    "tiny/__init__.py": """\
        from tiny.shapes import (
            Square,
            area,
        )
        from tiny.words import (
            shout,
            title_case,
            vowels,
        )

        __all__ = [
            "Square",
            "area",
            "shout",
            "title_case",
            "vowels",
        ]
        """,
    "tiny/words.py": '''\
        import re

        _VOWELS = "aeiou"


        def shout(text, times=1):
            """Return the text in capitals with exclamation marks.

            >>> shout("hey")
            'HEY!'
            """
            marks = "!" * times
            loud = text.upper()
            return loud + marks


        def vowels(text):
            """Count the vowels of a text."""
            found = [letter for letter in text.lower() if letter in _VOWELS]
            number = len(found)
            return number


        def title_case(text):
            """Capitalise each word, white space squeezed."""
            words = re.split(r"\\s+", text.strip())
            capitals = [word.capitalize() for word in words]
            return " ".join(capitals)
        ''',
    "tiny/shapes.py": '''\
        class Square:
            """A square by the length of its side."""

            def __init__(self, side):
                self.side = side
                self.name = "square"
                self.corners = 4

            def grow(self, factor):
                """Return a square with sides `factor` times as long."""
                longer = self.side * factor
                grown = Square(longer)
                return grown


        def area(width, height):
            """Return the area of a rectangle; negative sides are an error."""
            if width < 0 or height < 0:
                raise ValueError("negative side")
            return width * height
        ''',
    "tests/test_words.py": """\
        import pytest

        from tiny import (
            shout,
            title_case,
            vowels,
        )


        def test_shout():
            assert shout("hey") == "HEY!"


        @pytest.mark.parametrize("times", [2, 3])
        def test_shout_louder(times):
            assert shout("hey", times) == "HEY" + "!" * times


        @pytest.mark.parametrize(("text", "number"), [("a b", 1), ("[x]", 0), ("\\u00e9 e", 1)])
        def test_vowels(text, number):
            assert vowels(text) == number


        def test_title_case():
            assert title_case(" two  words ") == "Two Words"
            assert title_case("one") == "One"
        """,
    "tests/test_shapes.py": """\
        import pytest

        from tiny import Square
        from tiny import area


        def test_square():
            assert Square(2).side == 2


        def test_grow():
            assert Square(2).grow(3).side == 6


        def test_area():
            assert area(2, 3) == 6


        def test_negative_area():
            with pytest.raises(ValueError, match="negative"):
                area(-1, 3)


        def test_names():
            assert "tiny".upper() == "TINY"


        def test_flaky():
            assert hash("a") % 2 == HASH


        HASH = hash("a") % 2 if __import__("os").environ["PYTHONHASHSEED"] == "0" else 2
        """,
}


def write_tree(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a small repository."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return folder


def entry(name: str, source: str, *, wall_s: float = 1.0) -> str:
    """Return a manifest entry."""
    return (
        f'[[repo]]\nname = "{name}"\n{source}\nlicence = "MIT"\npython = "3.11"\n'
        f'[repo.install]\npackages = ["pytest"]\nexclude_newer = "2026-11-01"\n'
        f"[repo.test]\nwall_s = {wall_s}\n\n"
    )


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all commands of the session, in each worker."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def environ(cache: Path) -> dict[str, str]:
    return {**os.environ, "REGROW_CACHE": str(cache), "COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture(scope="session")
def regrow(environ: dict[str, str]) -> Regrow:
    """Run a command to its end."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pipeline", *map(str, arguments)]
        return subprocess.run(
            command,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            **options,
        )

    return run


@pytest.fixture(scope="session")
def tiny_manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of the small library alone."""
    folder = tmp_path_factory.mktemp("tiny")
    write_tree(folder / "tiny", LIBRARY)
    manifest = folder / "tiny.toml"
    manifest.write_text(entry("tiny", 'path = "tiny"'))
    return manifest


@pytest.fixture(scope="session")
def tiny_run(tiny_manifest: Path, regrow: Regrow, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the small library."""
    out = tmp_path_factory.mktemp("run") / "tiny"
    done = regrow("generate", tiny_manifest, "--out", out, "--jobs", 2)
    assert done.returncode == 0, done.stderr
    return out


def wait_for_records(folder: Path, number: int, process: subprocess.Popen[str]) -> None:
    """Wait until a run has done some units, or has ended."""
    deadline_s = time.monotonic() + 120
    while len(list(folder.glob("[!.]*.json"))) < number:
        assert time.monotonic() < deadline_s
        if process.poll() is not None:
            return
        time.sleep(0.02)


def kill_at(
    num_records: int, arguments: tuple[str, ...], run: Path, environ: dict[str, str]
) -> None:
    """Start a command that works on a run, and kill it when so many units are done."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", *arguments],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for_records(run / "done", num_records, process)
    process.kill()
    process.wait()


def wait_until_it_listens(process: "subprocess.Popen[str]") -> None:
    """Wait until a command has begun and looks after signals itself, or has ended."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
        if int(caught, 16) & bit:
            return
        time.sleep(0.05)


def processes_naming(text: str) -> list[str]:
    """Return the command lines, ours aside, that hold a text, once the kernel has cleaned up."""
    deadline_s = time.monotonic() + 3
    while found := [line for line in _command_lines() if text in line]:
        if time.monotonic() > deadline_s:
            return found
        time.sleep(0.05)
    return []


def _command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if path.parent.name != str(os.getpid()):
            lines.append(text)
    return lines
