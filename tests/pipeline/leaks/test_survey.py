import shutil
import sysconfig
from pathlib import Path

import pytest

from pipeline.leaks.definitions import ANYTHING
from pipeline.leaks.survey import files_that_define, machine_folder, survey_system
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
    survey = survey_system(system_in(tmp_path), folder=tmp_path / "kept")
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
    assert set(survey_system(roots, folder=tmp_path / "kept")) == {"/usr/with.so"}


def test_only_what_has_changed_is_looked_into_again(tmp_path: Path):
    system, kept = system_in(tmp_path), tmp_path / "kept"
    before = survey_system(system, folder=kept)
    (file,) = kept.iterdir()
    (tmp_path / "system/lib/b.py").write_bytes(b"def quite_another(): ...\n")
    (tmp_path / "system/lib/packed.zip").unlink()
    survey_system.cache_clear()
    after = survey_system(system, folder=kept)
    assert after == {
        "/usr/lib/a.py": before["/usr/lib/a.py"],
        "/usr/lib/b.py": ("quite_another",),
    }
    assert list(kept.iterdir()) == [file]


def test_a_broken_survey_is_made_anew(tmp_path: Path):
    system, kept = system_in(tmp_path), tmp_path / "kept"
    whole = survey_system(system, folder=kept)
    (file,) = kept.iterdir()
    file.write_bytes(file.read_bytes()[:40])
    survey_system.cache_clear()
    assert survey_system(system, folder=kept) == whole


def test_only_files_with_a_wanted_name_and_unread_ones_are_given_back(tmp_path: Path):
    system = system_in(tmp_path)
    survey = {"/usr/lib/a.py": [NAME], "/usr/lib/b.py": ["other"], "/usr/odd": [ANYTHING]}
    found = list(files_that_define(frozenset({NAME}), survey, system=system))
    assert [it.target for it in found] == ["/usr/lib/a.py", "/usr/odd"]
    assert found[0].folder.read_bytes() == SECRET


def test_surveys_are_kept_where_nobody_else_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ours = machine_folder(tmp_path / "cache")
    assert ours.parent == tmp_path
    assert ours.stat().st_mode & 0o077 == 0
    ours.chmod(0o777)
    assert machine_folder(tmp_path / "cache") == tmp_path / "cache" / "verdicts"
    ours.rmdir()
    ours.symlink_to(tmp_path)
    assert machine_folder(tmp_path / "cache") == tmp_path / "cache" / "verdicts"


def test_nothing_is_imported_from_where_a_command_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in ("json.py", "pipeline.py", "mmap.py"):
        (trap / name).write_text("open('sprung', 'w')\nraise SystemExit(3)\n")
    monkeypatch.chdir(trap)
    assert survey_system(system_in(tmp_path), folder=tmp_path / "kept")
    assert not (trap / "sprung").exists()
