from dataclasses import replace

from tests.trainer.feedback.checks import found, is_mended, kinds
from tests.trainer.feedback.episodes import broken, call, episode, fault, says

WELL = '{"name": "read_file", "arguments": {"path": "a.py"}}'


def test_what_the_environment_failed_is_its_own_fault_and_shuts_out_all_else_in_the_reply() -> None:
    bad = says("", fault("read_file", path="a.py"), call("no_such_tool", "no such tool", ok=False))
    assert kinds(episode(bad)) == ["environment_fault"]


def test_a_kernel_tool_that_dies_or_is_late_is_a_fault_though_nobody_marked_it() -> None:
    for text in ("the call died with status 137: ", "the call went over its limit of wall"):
        one = episode(says("", call("read_file", text, ok=False, path="a.py")))
        assert kinds(one) == ["environment_fault"]


def test_a_module_that_dies_when_it_is_imported_is_no_fault_of_the_environment() -> None:
    text = "the call died with status 1: "
    assert kinds(episode(says("", call("import_modules", text, ok=False, modules=["a"])))) == []


def test_a_command_that_ends_badly_is_no_fault_of_the_environment() -> None:
    assert (
        kinds(episode(says("", call("run_command", "exit status 1", ok=False, command="x")))) == []
    )


def test_a_fault_in_one_reply_leaves_the_others_as_they_are() -> None:
    bad = says("", call("no_such_tool", "there is no tool", ok=False))
    assert kinds(episode(says("", fault("read_file", path="a")), bad)) == [
        "environment_fault",
        "unknown_tool",
    ]


def test_a_well_written_call_that_was_not_read_is_the_parsers_fault() -> None:
    assert kinds(episode(says("", broken(WELL, name="read_file")))) == ["parser_fault"]


def test_a_name_left_in_its_wrapping_is_the_parsers_fault() -> None:
    for name in ("functions.read_file", "functions.read_file:0", "tool/read_file"):
        one = episode(says("", call(name, "there is no tool", ok=False, path="a.py")))
        assert kinds(one) == ["parser_fault"], name


def test_a_call_that_was_carried_out_all_the_same_is_the_parsers_fault() -> None:
    assert kinds(episode(says("", call("new_tool", "well", path="a.py")))) == ["parser_fault"]


def test_a_broken_call_is_not_the_parsers_fault() -> None:
    for raw in (WELL[:-1], WELL.replace("read_file", "no_such_tool"), "[1]", ""):
        assert "parser_fault" not in kinds(episode(says("", broken(raw))))


def test_a_call_that_is_read_well_has_no_parsers_fault() -> None:
    one = episode(says("", broken(WELL, name="read_file")))
    assert is_mended(one, "parser_fault", says("", call("read_file", path="a.py")))
    assert not is_mended(one, "parser_fault", says("", broken(WELL, name="read_file")))
    faulty = episode(says("", fault("read_file", path="a.py")))
    assert is_mended(faulty, "environment_fault", says("", call("read_file", path="b.py")))


def test_an_episode_that_a_machine_failed_or_that_we_cut_has_no_findings() -> None:
    bad = episode(says("", call("no_such_tool", "there is no tool", ok=False)))
    assert kinds(bad) == ["unknown_tool"]
    assert kinds(replace(bad, reward=None, ending="infra")) == []
    assert kinds(replace(bad, reward=None, ending="cut")) == []
    assert found(bad, "unknown_tool").evidence == "no_such_tool"
