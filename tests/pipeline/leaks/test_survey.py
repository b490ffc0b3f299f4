import json
import shutil
import sysconfig
from pathlib import Path

from pipeline.leaks.survey import ANYTHING, files_that_define, survey_system
from pipeline.leaks.walk import Root
from tests.pipeline.leaks.planted import SECRET

NAME = "measure_furlongs"


def system_in(folder: Path) -> tuple[Root, ...]:
    """Lay out a small system with a copy of a function in each of several files."""
    system = folder / "system"
    for name, content in {
        "lib/a.py": SECRET,
        "lib/b.py": b"def other(): ...\n",
        "share/words": b"nothing is defined here\n",
        "hidden/c.py": SECRET,
    }.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_bytes(content)
    shutil.make_archive(str(system / "lib/packed"), "zip", system, "lib")
    return (Root(folder=system, target="/usr", masked=("hidden",)),)


def test_a_file_is_known_by_what_it_defines_however_it_is_packed(tmp_path: Path):
    survey = survey_system(system_in(tmp_path), cache=tmp_path / "cache")
    assert {path: set(names) for path, names in survey.items()} == {
        "/usr/lib/a.py": {NAME},
        "/usr/lib/b.py": {"other"},
        "/usr/lib/packed.zip": {NAME, "other"},
    }


def test_programs_are_looked_into_for_text(tmp_path: Path):
    libraries = Path(sysconfig.get_path("stdlib"), "lib-dynload").glob("*.so")
    library = min(libraries, key=lambda it: it.stat().st_size).read_bytes()
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "plain.so").write_bytes(library)
    (tmp_path / "system" / "with.so").write_bytes(library + b"\0" + SECRET)
    roots = (Root(folder=tmp_path / "system", target="/usr"),)
    assert set(survey_system(roots, cache=tmp_path / "cache")) == {"/usr/with.so"}


def test_a_survey_is_made_anew_when_a_file_has_changed(tmp_path: Path):
    system, cache = system_in(tmp_path), tmp_path / "cache"
    assert survey_system(system, cache=cache) == survey_system(system, cache=cache)
    assert len(list((cache / "verdicts").iterdir())) == 1
    changed = tmp_path / "other"
    shutil.copytree(tmp_path / "system", changed)
    (changed / "lib/b.py").write_bytes(b"def quite_another(): ...\n")
    moved = (Root(folder=changed, target="/usr", masked=("hidden",)),)
    assert survey_system(moved, cache=cache)["/usr/lib/b.py"] == ["quite_another"]


def test_only_files_with_a_wanted_name_and_unread_ones_are_given_back(tmp_path: Path):
    system = system_in(tmp_path)
    survey = {"/usr/lib/a.py": [NAME], "/usr/lib/b.py": ["other"], "/usr/odd": [ANYTHING]}
    found = list(files_that_define(frozenset({NAME}), survey, system=system))
    assert [it.target for it in found] == ["/usr/lib/a.py", "/usr/odd"]
    assert found[0].folder.read_bytes() == SECRET
    assert json.dumps(survey)
