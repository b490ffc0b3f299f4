"""Read the test dependencies of a tox configuration, wherever it stands."""

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.requirement_files import expand_line
from pipeline.static_metadata import load_ini, load_toml, parse_ini, strings, table

# `py38,py39: mock`: holds for some environments only.
FACTOR = re.compile(r"[\w {}.!,-]+:(?!//)")
# `{[base]deps}`: the value of another section.
REFERENCE = re.compile(r"\{\[([^\]]+)\]([^}]+)\}")
# References may go in circles.
MAX_DEPTH = 5


def tox_requirements(tree: Path) -> list[str]:
    """Return the requirement strings of tox's default test environment."""
    found = []
    for line in _lines(tree):
        inside = line.replace("{toxinidir}/", "").replace("{tox_root}/", "")
        if "{" not in inside and not FACTOR.match(inside):
            found += expand_line(tree, inside, folder=tree)
    return found


def _lines(tree: Path) -> list[str]:
    """Return the raw lines of `deps` from the first place that has any."""
    tox = table(load_toml(tree / "pyproject.toml"), "tool", "tox")
    setup_cfg = load_ini(tree / "setup.cfg")
    places = [
        _ini_lines(load_ini(tree / "tox.ini")),
        _ini_lines(setup_cfg) if setup_cfg.has_section("tox:tox") else [],
        strings(table(tox, "env_run_base").get("deps")),
        _ini_lines(parse_ini(str(tox.get("legacy_tox_ini", "")))),
        strings(table(load_toml(tree / "tox.toml"), "env_run_base").get("deps")),
    ]
    return next((list(lines) for lines in places if lines), [])


def _ini_lines(ini: configparser.ConfigParser) -> list[str]:
    return list(_values(ini, "testenv", "deps", depth=MAX_DEPTH))


def _values(
    ini: configparser.ConfigParser, section: str, option: str, *, depth: int
) -> Iterator[str]:
    """Yield the lines of an option, references to other sections replaced by theirs."""
    for line in strings(ini.get(section, option, fallback="")):
        reference = REFERENCE.fullmatch(line)
        if reference and depth:
            yield from _values(ini, reference[1], reference[2], depth=depth - 1)
        else:
            yield line
