import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.task.patch import (
    PatchError,
    apply_patch,
    is_protected,
    make_patch,
    num_removed_lines,
    patch_paths,
    read_patch,
)
from pipeline.task.tree import find_misfit

Tree = dict[str, bytes]

# Every character that some splitter of lines takes for an end, next to ordinary ones.
TEXT = st.text(st.sampled_from("ab +-@\\\t\r\f\v\x1c\x85\u2028é\n\n\n"), max_size=40)
NAMES = st.sampled_from(["a", "b.py", "sp ace", 'qu"ote\\', "tab\tnew\nline", "dir/é", "dir/x\x7f"])
TREES = st.dictionaries(NAMES, TEXT.map(str.encode), max_size=4)
LONG = "".join(f"line {number}\n" for number in range(40))


def patched(tree: Mapping[str, bytes], patch: str) -> Tree:
    merged = {**tree, **apply_patch(tree, patch)}
    return {path: content for path, content in merged.items() if content is not None}


def section(body: str, path: str = "f") -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{body}"


def write(folder: Path, tree: Tree) -> None:
    for path, content in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def read(folder: Path) -> Tree:
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def git(folder: Path, *args: str, stdin: bytes = b"") -> bytes:
    command = ["git", "-c", "core.autocrlf=false", "-c", "user.name=n", "-c", "user.email=e", *args]
    return subprocess.run(command, cwd=folder, input=stdin, check=True, capture_output=True).stdout


@given(TREES, TREES)
@settings(deadline=None)
def test_a_made_patch_turns_before_into_after(before: Tree, after: Tree) -> None:
    patch = make_patch(before, after)
    assert patched(before, patch) == after
    assert patched(after, make_patch(after, before)) == before


@given(st.lists(st.sampled_from("abc"), max_size=60), st.data())
@settings(deadline=None)
def test_a_patch_of_scattered_edits_turns_before_into_after(
    lines: list[str], data: st.DataObject
) -> None:
    edited = [data.draw(st.sampled_from([line, line, line, "new", ""])) for line in lines]
    before, after = ({"f": "\n".join(part).encode()} for part in (lines, edited))
    assert patched(before, make_patch(before, after)) == after


@given(before=TREES, after=TREES)
@settings(deadline=None, max_examples=15)
def test_git_applies_a_made_patch_to_the_same_tree(
    tmp_path_factory: pytest.TempPathFactory, before: Tree, after: Tree
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    git(folder, "init", "-q")
    write(folder, before)
    if patch := make_patch(before, after):
        git(folder, "apply", "--whitespace=nowarn", stdin=patch.encode())
    assert read(folder) == after


@given(before=TREES, after=TREES)
@settings(deadline=None, max_examples=15)
def test_the_patch_that_git_makes_is_applied_as_git_means_it(
    tmp_path_factory: pytest.TempPathFactory, before: Tree, after: Tree
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    git(folder, "init", "-q")
    write(folder, before)
    git(folder, "add", "-f", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "before")
    for path in before:
        (folder / path).unlink()
    write(folder, after)
    git(folder, "add", "-f", ".")
    patch = git(folder, "diff", "--cached", "--text", "--no-renames", "HEAD")
    assert patched(before, patch.decode()) == after


def test_a_patch_reads_as_git_writes_it() -> None:
    before = {"gone": b"x", "kept": b"1\n", "sp ace": b"a\nb\nc\nd\ne\n"}
    after = {"kept": b"1\n", "new": b"", "sp ace": b"a\nb\nc\nd\nE"}
    assert make_patch(before, after) == (
        "diff --git a/gone b/gone\n"
        "deleted file mode 100644\n"
        "--- a/gone\n"
        "+++ /dev/null\n"
        "@@ -1,1 +0,0 @@\n"
        "-x\n"
        "\\ No newline at end of file\n"
        "diff --git a/new b/new\n"
        "new file mode 100644\n"
        "diff --git a/sp ace b/sp ace\n"
        "--- a/sp ace\t\n"
        "+++ b/sp ace\t\n"
        "@@ -2,4 +2,4 @@\n"
        " b\n"
        " c\n"
        " d\n"
        "-e\n"
        "+E\n"
        "\\ No newline at end of file\n"
    )


def test_equal_trees_make_the_empty_patch_that_changes_nothing() -> None:
    assert make_patch({"a": b"\xff"}, {"a": b"\xff"}) == ""
    assert apply_patch({"a": b""}, "") == {}


def test_content_that_is_not_utf8_is_named_when_a_patch_is_made() -> None:
    with pytest.raises(ValueError, match=r"pic\.png: not UTF-8 .* at byte 1"):
        make_patch({}, {"pic.png": b"a\xff"})


def test_a_patch_leaves_bytes_that_are_not_utf8_beside_it_alone() -> None:
    patch = section("@@ -2 +2 @@\n-b\n+c\n")
    assert apply_patch({"f": b"\xff\nb\n"}, patch) == {"f": b"\xff\nc\n"}


def test_a_hunk_that_moved_is_put_where_its_lines_stand_alone() -> None:
    patch = make_patch({"f": LONG.encode()}, {"f": LONG.replace("line 9\n", "").encode()})
    moved = f"top\n{LONG}".encode()
    assert apply_patch({"f": moved}, patch) == {"f": moved.replace(b"line 9\n", b"")}


def test_hunks_after_a_moved_one_move_with_it() -> None:
    patch = section("@@ -1,2 +1,2 @@\n-one\n+ONE\n x\n@@ -4 +4 @@\n-x\n+X\n")
    assert apply_patch({"f": b"top\none\nx\nx\nx\n"}, patch) == {"f": b"top\nONE\nx\nx\nX\n"}


def test_paths_and_removed_lines_are_read_from_a_patch() -> None:
    patch = make_patch({"a": b"1\n2\n", "b": b""}, {"a": b"1\n", "c": b"--- x\n"})
    assert patch_paths(patch) == ("a", "b", "c")
    assert num_removed_lines(patch) == 1


def test_an_editors_stripped_blank_line_and_missing_last_newline_are_understood() -> None:
    patch = section("@@ -1,3 +1,3 @@\n a\n\n-b\n+c")
    assert apply_patch({"f": b"a\n\nb\n"}, patch) == {"f": b"a\n\nc\n"}


MOVE = "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n"
MODE = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
LINK = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n"
ADD = "diff --git a/f b/f\nnew file mode 100644\n"
DROP = "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("please change f\n", "starts with 'please change f'"),
        (MOVE, "a/a b/b: renames or copies a file"),
        (LINK, "path 'l' is a symbolic link"),
        (LINK.replace("120000", "160000"), "path 'l' is a submodule"),
        (LINK.replace("120000", "100600"), "path 'l' has the mode 100600, expected"),
        ("diff --git a/f b/f\nGIT binary patch\n", "path 'f' is binary, only text can change"),
        ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "path 'f' is binary"),
        ("diff --git a/f b/g\n", "expected one name"),
        ("diff --git a/f b/f\n", "f: no hunk"),
        ("diff --git a/f b/f\nsurprise\n", "f: unexpected header 'surprise'"),
        (section("@@ -1 +1 @@\n-a\n+b\n", "/etc/passwd"), "path '/etc/passwd'"),
        (section("@@ -1 +1 @@\n-a\n+b\n", "x/../../y"), "path 'x/../../y'"),
        (section("@@ -1 +1 @@\n-a\n+b\n", ".git/config"), "git's own"),
        ("diff --git a/f b/f\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "f: `---` and"),
        (section("@@ -1 +1 @@\n-a\n+b\n") * 2, "f: changed twice"),
        (section("@@ nonsense\n"), "f, hunk 1: '@@ nonsense"),
        (section(f"@@ -1 +{'1' * 5000} @@\n-a\n+b\n"), "f, hunk 1: '@@ -1 .*11', expected"),
        (section(f"@@ -1,{'1' * 5000} +1 @@\n-a\n+b\n"), "f, hunk 1: '@@ -1,1"),
        ('diff --git "a/\\8" "b/\\8"\n', r"a name holds \\8, expected three octal digits"),
        ('diff --git "a/\\7" "b/\\7"\n', r"a name holds \\7, expected three octal digits"),
        (section("@@ -1,2 +1 @@\n-a\n+b\n"), r"f, hunk 1: \(1, 1\) old and new lines, expected"),
        (section("@@ -1 +1 @@\n*a\n"), "f, hunk 1: line"),
        (section("@@ -1 +1 @@\n-z\n+b\n"), "f, hunk 1: no place has its 1 old lines, first 'z"),
        (section("@@ -1 +1 @@\n-a \n+b\n"), "no place"),
        (section("@@ -2 +2 @@\n-a\n+b\n"), "its old lines stand at 2 places"),
        (section("@@ -9,0 +9 @@\n+b\n"), "inserts after line 9 of 3"),
        (section("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"), "is not the last one"),
        (section("@@ -1 +1 @@\n-a\n+b\n", "missing"), "missing: no such file"),
        (section("@@ -1 +1 @@\n-a\n+\ud800\n"), "expected text that UTF-8 can hold"),
        (ADD, "f: is there"),
        (DROP, "f: 4 bytes left"),
    ],
)
def test_a_patch_that_is_malformed_or_does_not_fit_is_refused(patch: str, message: str) -> None:
    with pytest.raises(PatchError, match=message) as caught:
        apply_patch({"f": b"a\nx\na\n"}, patch)
    assert "\n" not in str(caught.value)


def test_what_no_tree_can_hold_is_told_apart_from_what_one_can() -> None:
    gone = (
        "diff --git a/l b/l\ndeleted file mode 100644\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    read = read_patch({"f": b"a\n", "l": b"x\n"}, gone + LINK + section("@@ -1 +1 @@\n-a\n+b\n"))
    assert read.changes == {"f": b"b\n"}
    assert read.oddities == {"l": "is a symbolic link"}


def test_that_a_file_becomes_executable_is_no_change_of_its_content() -> None:
    assert apply_patch({"f": b"a\n"}, MODE) == {"f": b"a\n"}
    both = MODE + "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
    assert apply_patch({"f": b"a\n"}, both) == {"f": b"b\n"}


# Pieces of patches, so that what they make up is often nearly one.
PIECES = st.sampled_from([
    *('diff --git "', "diff --git ", " ", "a/", "b/", "f", '"', '" "', "\\", "8", "377", "\udcff"),
    *("\n", "\t", "--- ", "+++ ", "/dev/null", "new file mode 100644\n", "@@ -1", " +1", " @@"),
    *("9" * 5000, ",", "-a\n", "+é\n", "\ud800", "\\ No newline\n", "\0", "é" * 200, "/"),
])


PARTS = st.lists(PIECES, max_size=9).map("".join)
STARTS = PARTS.map(lambda name: f'diff --git "a/{name}" "b/{name}"\n')


@given(start=STARTS | st.sampled_from(["", section("@@ -1")]), text=PARTS)
@settings(deadline=None)
def test_any_text_is_a_patch_or_refused(
    tmp_path_factory: pytest.TempPathFactory, start: str, text: str
) -> None:
    try:
        changes = apply_patch({"f": b"a\nx\n"}, start + text)
    except (PatchError, UnicodeError):
        return
    find_misfit(tmp_path_factory.getbasetemp(), changes)


@pytest.mark.parametrize("sign", ["a", "é", "\udcff"])
@pytest.mark.parametrize("num_folders", [0, 9, 99, 999])
def test_what_is_no_misfit_can_be_written_and_removed(
    tmp_path: Path, sign: str, num_folders: int
) -> None:
    for length in (1, 127, 128, 255, 256):
        path = f"{'d/' * num_folders}{sign * length}"
        if not find_misfit(tmp_path, {path: b""}):
            write(tmp_path / "tree", {path: b""})
            shutil.rmtree(tmp_path / "tree")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("src/test_a.py", "is a test"),
        ("src/a_test.py", "is a test"),
        ("tests.py", "is a test"),
        ("toolz/tests/data/x.json", "is below tests, a folder of tests"),
        ("Tests/x", "is below Tests, a folder of tests"),
        ("a/testing/b.py", "is below testing, a folder of tests"),
        ("a/conftest.py", "configures the tests"),
        ("pyproject.toml", "configures the tests"),
        ("sub/tox.ini", "configures the tests"),
        (".coveragerc", "configures the tests"),
        ("setup.py", "configures the package"),
        ("x.pth", "runs at the start of the interpreter"),
        ("lib/sitecustomize.py", "runs at the start of the interpreter"),
        ("src/a.egg-info/entry_points.txt", "is the metadata of an installed package"),
        ("a/__pycache__/b.txt", "is bytecode, which can stand in for any source"),
        ("src/contest.py", ""),
        ("src/latest/core.py", ""),
        ("testing.py", ""),
    ],
)
def test_a_solver_may_not_change_what_decides_about_it(path: str, reason: str) -> None:
    assert is_protected(path) == reason
