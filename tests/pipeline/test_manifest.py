"""Manifests are read whole, and each fault is told with its file, line and key."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.manifest import PERMISSIVE, ManifestError, load_manifest
from pipeline.task.origin import Install, Repo, Source, TestCommand, Variable
from pipeline.toml_lines import key_lines

REPOS = Path(__file__).parents[2] / "repos"
SHA256 = "ab" * 32
COMMIT = "cd" * 20

GOOD = f"""\
[[repo]]
name = "toolz"
sdist = "toolz==1.2.0"
sha256 = "{SHA256}"
licence = "bsd-3-clause"
python = "3.11"
"""
TWO = GOOD + GOOD.replace('"toolz"', '"boltons"')


def _load(tmp_path: Path, text: str) -> tuple[Repo, ...]:
    path = tmp_path / "m.toml"
    path.write_text(text, encoding="utf-8")
    return load_manifest(path)


def test_a_full_entry_becomes_a_repo(tmp_path: Path):
    text = GOOD + (
        '[repo.install]\ngroups = ["tests"]\nextras = ["a"]\nrequirements = ["r.txt"]\n'
        'packages = ["trio>=1"]\nexclude_newer = 2025-10-17\n'
        '[repo.test]\nargs = ["-o", "addopts="]\nimport_roots = ["lib"]\nwall_s = 7\n'
        'variables = { TZ = "UTC" }\n'
    )
    assert _load(tmp_path, text) == (
        Repo(
            name="toolz",
            source=Source(kind="sdist", location="toolz==1.2.0", pin=SHA256),
            licence="BSD-3-Clause",
            python="3.11",
            install=Install(
                groups=("tests",),
                extras=("a",),
                requirements=("r.txt",),
                packages=("trio>=1",),
                exclude_newer="2025-10-17",
            ),
            test=TestCommand(
                args=("-o", "addopts="),
                variables=(Variable(name="TZ", value="UTC"),),
                import_roots=("lib",),
                wall_s=7.0,
            ),
        ),
    )


def test_paths_stay_as_they_are_spelled(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    base = GOOD.replace(f'sdist = "toolz==1.2.0"\nsha256 = "{SHA256}"', "SOURCE")
    [folder] = _load(tmp_path, base.replace("SOURCE", 'path = "sub"'))
    [clone] = _load(tmp_path, base.replace("SOURCE", f'git = "sub"\ncommit = "{COMMIT}"'))
    assert folder.source == Source(kind="path", location="sub", pin="")
    assert clone.source == Source(kind="git", location="sub", pin=COMMIT)


FAULTS = [
    ("unknown key", GOOD + "[repo.test]\nwal_s = 3\n", 8, "repo.test.wal_s: unknown key"),
    ("unknown repo key", GOOD + 'homepage = "x"\n', 7, "repo.homepage: unknown key"),
    ("unknown table", "[tool]\n" + GOOD, 1, "tool: unknown key, expected one of repo"),
    ("in the second repo", TWO + "test.wal_s = 3\n", 13, "repo.test.wal_s: unknown key"),
    ("missing key", GOOD.replace('python = "3.11"\n', ""), 1, "repo.python: missing"),
    ("missing pin", GOOD.replace(f'sha256 = "{SHA256}"\n', ""), 1, "repo.sha256: missing"),
    ("wrong type", GOOD.replace('"toolz"', "3"), 2, "repo.name: found 3"),
    ("bad name", GOOD.replace('"toolz"', '"Tool z"'), 2, "repo.name: found 'Tool z'"),
    ("bad sdist", GOOD.replace("toolz==1.2.0", "toolz"), 3, "repo.sdist: found 'toolz'"),
    ("bad hash", GOOD.replace(SHA256, "abc"), 4, "repo.sha256: found 'abc', expected 64 hex"),
    ("bad python", GOOD.replace('"3.11"', '"3.11.2"'), 6, "repo.python: found '3.11.2'"),
    ("copyleft", GOOD.replace("bsd-3-clause", "GPL-3.0-only"), 5, "repo.licence: found 'GPL-3.0"),
    ("half copyleft", GOOD.replace("bsd-3-clause", "MIT AND MPL-2.0"), 5, "expected of MIT, BSD"),
    ("no licence id", GOOD.replace("bsd-3-clause", "BSD"), 5, "repo.licence: found 'BSD'"),
    ("taken name", GOOD + GOOD, 8, "repo.name: 'toolz' is taken"),
    ("two sources", GOOD + 'path = "."\n', 7, "repo.path: a second source besides sdist"),
    ("foreign pin", GOOD + f'commit = "{COMMIT}"\n', 7, "repo.commit: goes with git"),
    ("no source", GOOD.replace("sdist", "#"), 1, "repo.sdist: missing, expected one source of"),
    ("no folder", '\n[[repo]]\nname="a"\nlicence="MIT"\npath="x"\n', 5, "repo.path: found 'x'"),
    ("short commit", '[[repo]]\nlicence="MIT"\nname="a"\ngit="u"\ncommit="abc"', 5, "repo.commit"),
    ("no list", GOOD + '[repo.test]\nargs = "tests"\n', 8, "repo.test.args: found 'tests'"),
    ("item", GOOD + '[repo.test]\nargs = [\n  "a",\n  3,\n]\n', 10, "repo.test.args: found 3"),
    ("zero", GOOD + "[repo.test]\nwall_s = 0\n", 8, "repo.test.wall_s: found 0"),
    ("bool", GOOD + "[repo.test]\nwall_s = true\n", 8, "repo.test.wall_s: found True"),
    ("value", GOOD + "[repo.test]\nvariables = { A = 'x',\tB = 3 }\n", 8, "variables.B: found 3"),
    ("variable", GOOD + "[repo.test.variables]\n'a b' = 'x'\n", 8, "variables.a b: found 'a b'"),
    ("no table", GOOD + "install = 3\n", 7, "repo.install: found 3, expected a table"),
    ("climbs", GOOD + '[repo.test]\nimport_roots = ["../x"]\n', 8, "import_roots: found '../x'"),
    ("date", GOOD + '[repo.install]\nexclude_newer = "2025-13-01"\n', 8, "found '2025-13-01'"),
    ("requirement", GOOD + '[repo.install]\npackages = ["a b"]\n', 8, "packages: found 'a b'"),
    ("repo is no array", "repo = 3\n", 1, "repo: missing, expected at least one [[repo]]"),
    ("empty", "# nothing\n", 1, "repo: missing, expected at least one [[repo]]"),
    ("no TOML", GOOD + "[repo.test\n", 7, "not TOML: "),
    ("ends early", GOOD + 'x = """\n\n', 7, "not TOML: "),
]


@pytest.mark.parametrize(
    ("text", "line", "message"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_a_fault_is_one_line_with_file_line_and_key(
    tmp_path: Path, text: str, line: int, message: str
):
    with pytest.raises(ManifestError) as caught:
        _load(tmp_path, text)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'm.toml'}:{line}: ")
    assert message in said
    assert "\n" not in said


def test_a_refused_licence_names_the_accepted_ones(tmp_path: Path):
    with pytest.raises(ManifestError) as caught:
        _load(tmp_path, GOOD.replace("bsd-3-clause", "AGPL-3.0-only"))
    assert all(licence in str(caught.value) for licence in PERMISSIVE)


def test_a_manifest_that_is_not_there_or_not_text_is_a_manifest_error(tmp_path: Path):
    with pytest.raises(ManifestError, match=r"none\.toml: cannot be read: No such file"):
        load_manifest(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"# ok\n# \xff\n")
    with pytest.raises(ManifestError, match=r"latin\.toml:2: not TOML: not UTF-8"):
        load_manifest(tmp_path / "latin.toml")


def test_lines_are_right_behind_strings_arrays_and_tables_that_look_like_keys():
    text = (
        'a = """\nb = 1\n[[c]]\n""" # d = 1\n'
        "'b.x' = [ # [e]\n  'f = 1]',\n  { g = 1, h.i = [2,\n 3] },\n]\n"
        "[c . \"d\"]\ne = '''x'''''\n\n[[z]]\ny = 1.5\n[[z]]\n[z.k]\nq = 1979-05-27 07:32:00\n"
    )
    tomllib.loads(text)
    lines = key_lines(text)
    assert lines[("a",)] == 1
    assert lines[("b.x",)] == 5
    assert lines[("b.x", 1, "g")] == 7
    assert lines[("b.x", 1, "h", "i", 1)] == 8
    assert lines[("c", "d", "e")] == 11
    assert lines[("z", 0, "y")] == 14
    assert lines[("z", 1, "k", "q")] == 17
    assert ("b",) not in lines


VALUES = st.sampled_from(['"x"', "'#'", "[1, 2]", "{ a = 1 }", '"""\n\n"""', "[\n1,\n]", "1.5"])


@given(st.lists(st.tuples(st.sampled_from(["a", "'b c'", '"d.e"', "f.g"]), VALUES)))
def test_each_key_of_any_manifest_has_the_line_it_starts_on(pairs: list[tuple[str, str]]):
    text = ""
    expected: dict[tuple[str | int, ...], int] = {}
    for number, (key, value) in enumerate(pairs):
        text += f"[[t]] # {number}\n"
        name = tuple(key.split(".")) if "." in key and '"' not in key else (key.strip("'\""),)
        expected[("t", number, *name)] = text.count("\n") + 1
        text += f"{key} = {value}\n"
    tomllib.loads(text)
    lines = key_lines(text)
    assert {path: lines[path] for path in expected} == expected


@pytest.mark.parametrize("name", ["quickstart", "python"])
def test_the_manifests_of_this_repository_are_good(name: str):
    repos = load_manifest(REPOS / f"{name}.toml")
    assert len(repos) >= {"quickstart": 3, "python": 24}[name]
    assert all(repo.source.kind == "sdist" for repo in repos)
