"""What is written down is read back as the same Repo, whatever foreign text is in it."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.manifest import ManifestError, load_manifest
from pipeline.proposal.block import append, render
from pipeline.proposal.error import ProposalError
from pipeline.proposal.record import Aside, Proposal
from pipeline.task.origin import Install, Repo, Source, TestCommand
from pipeline.task.record import Baseline

BASELINE = Baseline(
    passing=("a",),
    quarantined=(),
    durations_s=(0.1,),
    cpu_s=(1.0,),
    num_runs=1,
    plugins=(),
    alarms=(),
)
ASIDES = (
    Aside(option="--deselect", value="tests/test_a.py::test_b", why="Differs from run to run."),
    Aside(option="--deselect", value="tests/test_a.py::test_c[x]", why="Fails: OSError."),
    Aside(option="--ignore", value="tests/test_d.py", why="Fails: OSError."),
)
PLAIN = Proposal(
    repo=Repo(
        name="tiny",
        source=Source(kind="sdist", location="tiny==1.0", pin="3f" * 32),
        licence="MIT",
        python="3.11",
        install=Install(packages=("helper",), exclude_newer="2024-05-06"),
        test=TestCommand(wall_s=2.0),
    ),
    asides=(),
    summary="A tiny library",
    install_note="No metadata names it.",
    args_note="Its options measure coverage.",
    baseline=BASELINE,
)


def _with(proposal: Proposal, args: tuple[str, ...], asides: tuple[Aside, ...]) -> Proposal:
    every = (*args, *(text for it in asides for text in (it.option, it.value)))
    test = replace(proposal.repo.test, args=every)
    return replace(proposal, repo=replace(proposal.repo, test=test), asides=asides)


def test_a_block_says_why_it_is_as_it_is():
    assert render(_with(PLAIN, ("-o", "addopts="), ASIDES)) == (
        "# A tiny library\n"
        "[[repo]]\n"
        'name = "tiny"\n'
        'sdist = "tiny==1.0"\n'
        f'sha256 = "{"3f" * 32}"\n'
        'licence = "MIT"\n'
        'python = "3.11"\n'
        "\n"
        "[repo.install]\n"
        "# No metadata names it.\n"
        'packages = ["helper"]\n'
        "exclude_newer = 2024-05-06\n"
        "\n"
        "[repo.test]\n"
        "# Its options measure coverage.\n"
        "args = [\n"
        '    "-o", "addopts=",\n'
        "    # Differs from run to run.\n"
        '    "--deselect", "tests/test_a.py::test_b",\n'
        "    # Fails: OSError.\n"
        '    "--deselect", "tests/test_a.py::test_c[x]",\n'
        '    "--ignore", "tests/test_d.py",\n'
        "]\n"
        "wall_s = 2\n"
    )


def test_long_lists_are_written_one_a_line():
    files = tuple(f"tests/test_of_something_{number}.py" for number in range(4))
    bare = render(_with(PLAIN, files, ()))
    assert "args = [\n" + "".join(f'    "{file}",\n' for file in files) + "]\n" in bare
    mixed = render(_with(PLAIN, files, ASIDES[:1]))
    assert "".join(f'    "{file}",\n' for file in files) + "    # Differs" in mixed


# What a manifest takes: no lone surrogates, no NUL.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@given(
    summary=TEXT,
    args=st.lists(TEXT, max_size=3),
    asides=st.lists(st.builds(Aside, option=st.just("--ignore"), value=TEXT, why=TEXT), max_size=3),
)
def test_any_text_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, summary: str, args: list, asides: list
):
    proposal = _with(replace(PLAIN, summary=summary, args_note=summary), (*args,), (*asides,))
    manifest = tmp_path_factory.getbasetemp() / "any.toml"
    manifest.write_text(render(proposal), encoding="utf-8", newline="")
    assert load_manifest(manifest) == (proposal.repo,)


def test_a_block_is_added_to_the_end_of_a_manifest(tmp_path: Path):
    manifest = tmp_path / "all.toml"
    other = replace(PLAIN, repo=replace(PLAIN.repo, name="other"))
    append(other, manifest=manifest)
    text = manifest.read_text()
    append(PLAIN, manifest=manifest)
    assert [repo.name for repo in load_manifest(manifest)] == ["other", "tiny"]
    assert manifest.read_text().startswith(text)


def test_a_name_that_is_taken_is_refused(tmp_path: Path):
    manifest = tmp_path / "all.toml"
    append(PLAIN, manifest=manifest)
    text = manifest.read_text()
    with pytest.raises(ProposalError, match=r"all.toml: 'tiny' is there already"):
        append(PLAIN, manifest=manifest)
    assert manifest.read_text() == text


def test_a_file_that_is_no_manifest_is_left_alone(tmp_path: Path):
    manifest = tmp_path / "all.toml"
    manifest.write_text("[[repo]\n")
    with pytest.raises(ManifestError):
        append(PLAIN, manifest=manifest)
    assert manifest.read_text() == "[[repo]\n"
