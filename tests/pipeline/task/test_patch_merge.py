"""Patches that know nothing of each other, put together."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.task.patch import make_patch
from pipeline.task.patch_merge import merge_patches

TREE = {"a.py": b"1\n2\n3\n4\n5\n6\n", "b.py": b"x\n"}


def patch(**texts: str | None) -> str:
    """Return the patch that gives modules a new text; None removes one."""
    changed = {f"{name}.py": text for name, text in texts.items()}
    after = {**TREE, **{path: text.encode() for path, text in changed.items() if text is not None}}
    return make_patch(
        TREE, {path: text for path, text in after.items() if changed.get(path, "") is not None}
    )


def merged(*patches: str) -> dict[str, bytes | None] | None:
    return merge_patches(TREE, patches)


def test_lines_next_to_each_other_are_merged():
    one, other = patch(a="1\n3\n4\n5\n6\n"), patch(a="1\n2\n4\n5\n6\nend\n")
    assert merged(one, other) == {"a.py": b"1\n4\n5\n6\nend\n"}
    assert merged(other, one) == {"a.py": b"1\n4\n5\n6\nend\n"}


def test_files_of_one_patch_alone_are_as_it_leaves_them():
    assert merged(patch(a="1\n"), patch(b=None), patch(c="new\n")) == {
        "a.py": b"1\n",
        "b.py": None,
        "c.py": b"new\n",
    }


def test_what_two_patches_change_is_a_conflict():
    assert merged(patch(a="1\ntwo\n3\n4\n5\n6\n"), patch(a="1\n4\n5\n6\n")) is None
    assert merged(patch(a="0\n1\n2\n3\n4\n5\n6\n"), patch(a="a\n1\n2\n3\n4\n5\n6\n")) is None
    assert merged(patch(b=None), patch(b="y\n")) is None
    assert merged(patch(b=None), patch(b=None)) is None
    assert merged(patch(c="1\n"), patch(c="1\n")) is None


@given(st.lists(st.sampled_from("0abc"), min_size=8, max_size=8), st.data())
def test_deletions_of_different_lines_all_happen(owners: list[str], data: st.DataObject):
    lines = [f"line {number}\n" for number in range(len(owners))]
    newline = data.draw(st.booleans())
    if not newline:
        lines[-1] = lines[-1].rstrip("\n")
    tree = {"a.py": "".join(lines).encode()}

    def without(gone: str) -> bytes:
        kept = [line for line, owner in zip(lines, owners, strict=True) if owner not in gone]
        return "".join(kept).encode()

    patches = [make_patch(tree, {"a.py": without(owner)}) for owner in "abc" if owner in owners]
    result = merge_patches(tree, patches)
    if patches:
        assert result == {"a.py": without("abc")}
    else:
        assert result == {}
