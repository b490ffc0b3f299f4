import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.monitor.code_facts import facts_of
from pipeline.monitor.shell import parse_shell


def run(text: str) -> list[tuple[str, ...]]:
    return [(it.program, *it.words) for it in parse_shell(text)]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("cd x && git log --all | head", [("cd", "x"), ("git", "log", "--all"), ("head",)]),
        ("grep 'a | b; c' f # not this", [("grep", "a | b; c", "f")]),
        ('echo "say \\"hi\\" $x"', [("echo", 'say "hi" $x')]),
        ("A=1 env B=2 timeout 5 /usr/bin/git fsck", [("git", "fsck")]),
        ("sudo -u me nice -n 5 cat a", [("cat", "a")]),
        ("bash -lc 'strings a.pyc; ls'", [("bash", "-lc", "strings a.pyc; ls"),
                                          ("strings", "a.pyc"), ("ls",)]),
        ("x=$(git reflog)", [("git", "reflog")]),
        ("echo `git reflog`", [("echo", "`git reflog`"), ("git", "reflog")]),
        ("find . -name '*.pyc' -exec strings {} +",
         [("find", ".", "-name", "*.pyc", "-exec", "strings", "{}", "+"),
          ("strings", ".", "*.pyc")]),
        ("if test -e a; then cat a; fi", [("test", "-e", "a"), ("cat", "a"), ("fi",)]),
        ("a\\\n b", [("a", "b")]),
        ("echo 'never closed", [("echo", "'never", "closed")]),
        ("", []),
    ],
)  # fmt: skip
def test_a_shell_text_is_taken_apart_into_programs_and_words(
    text: str, commands: list[tuple[str, ...]]
):
    assert run(text) == commands


def test_what_feeds_a_command_and_where_its_output_goes_is_known():
    *_, last = parse_shell("find / -name '*.whl' | sort | xargs unzip -p > out.txt 2>&1")
    assert (last.program, last.words, last.writes) == ("unzip", ("-p",), ("out.txt",))
    assert set(last.context) == {"find", "/", "-name", "*.whl", "sort"}
    [_, loop, _, _] = parse_shell("for f in $(find . -name '*.pyc'); do strings $f; done")
    assert "$(find . -name '*.pyc')" in loop.context


def test_text_on_the_standard_input_is_known():
    for text in ("python3 - <<'EOF'\nimport os\nEOF\nls", "echo 'import os' | python3",
                 "python3 <<< 'import os'"):  # fmt: skip
        python = next(it for it in parse_shell(text) if it.program == "python3")
        assert python.stdin.strip() == "import os"
    [first, _] = parse_shell("cat > a.py <<-EOF && ls\n\tx = 1\n\tEOF\n")
    assert (first.stdin.strip(), first.writes) == ("x = 1", ("a.py",))


@given(st.text(alphabet="ab $(){}`'\"\\|&;<>\n#-/.", max_size=60))
def test_any_text_is_read_to_its_end(text: str):
    list(parse_shell(text))


def test_code_is_known_by_what_it_imports_under_whatever_name():
    code = (
        "import zipfile as z, os.path\nfrom os import _exit as leave\n"
        "z.ZipFile('a.whl')\nleave(0)\ngetattr(os, 'fork')()\n__import__('marshal').loads(b'x')\n"
    )
    found = facts_of(code)
    assert {"zipfile.ZipFile", "os._exit", "os.fork", "marshal.loads"} <= found.names
    assert {"a.whl", "x"} <= set(found.texts)


def test_commands_in_code_are_known_when_they_are_constants():
    code = (
        "import os, subprocess\nos.system('git log')\nsubprocess.run(['git', 'show', name])\n"
        "subprocess.run(command)\n"
    )
    assert facts_of(code).commands == ("git log", "git show $x")


def test_of_what_is_no_python_the_words_are_known():
    found = facts_of("import zipfile; print zipfile.ZipFile('a.whl')")
    assert "zipfile.ZipFile" in found.names
    assert "a.whl" in found.texts
