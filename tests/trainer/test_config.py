from pathlib import Path

import pytest

from trainer.config import ConfigError, TrainConfig, equation, load_config

CONFIGS = Path(__file__).parents[2] / "trainer" / "configs"
LEAST = 'tasks = "runs/a"\n[model]\ntiny = "dense"\n'


def load(tmp_path: Path, text: str, *overrides: str) -> TrainConfig:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return load_config(path, overrides=overrides)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_each_configuration_that_is_shipped_is_whole(path: Path) -> None:
    config = load_config(path)
    rollouts = config.prompts * config.group
    assert f"{config.prompts} prompts x {config.group} = {rollouts} rollouts" in equation(config)


def test_what_a_configuration_does_not_say_is_as_by_default(tmp_path: Path) -> None:
    config = load(tmp_path, LEAST)
    assert config == TrainConfig(tasks=Path("runs/a"), model={"tiny": "dense"})


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("rolout.max_turns=3", "unknown key rolout; did you mean rollout?"),
        ("rollout.max_turn=3", "unknown key rollout.max_turn; did you mean max_turns?"),
        (
            "objective.distill.weights=1",
            "unknown key objective.distill.weights; did you mean weight?",
        ),
        ("repair.tries_=3", "unknown key repair.tries_; did you mean tries?"),
        ("judge.vots=5", "unknown key judge.vots; did you mean votes?"),
        ("engine.http.ulr='x'", "unknown key engine.http.ulr; did you mean url?"),
        ("optimizer.zzz=1", "unknown key optimizer.zzz; there are beta1, beta2,"),
        ("rollout.max_turns=0", "rollout.max_turns 0: input should be greater than 0"),
        ("steps=many", "steps 'many': input should be a valid integer"),
        ("model.source=a", "model: source 'a', tiny 'dense'; expected one of them"),
        ("engine.kind=http", "engine: kind http without engine.http, expected its url and model"),
        ("rollout.temperature=0.5", "rollout.temperature 0.5 and objective.temperature 1.0"),
        ("group=1", "group 1: input should be greater than or equal to 2"),
    ],
)
def test_what_is_wrong_is_named_with_what_was_expected(
    tmp_path: Path, override: str, line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, LEAST, override)
    assert str(caught.value).startswith(f"{tmp_path / 'run.toml'}: {line}")
    assert "\n" not in str(caught.value)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run\.toml: tasks is missing"):
        load(tmp_path, '[model]\ntiny = "dense"\n')


@pytest.mark.parametrize("override", ["steps", "=3", "steps.x=3"])
def test_an_override_that_is_none_is_refused(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError, match=f"--set {override}: "):
        load(tmp_path, "steps = 2\n" + LEAST, override)


def test_overrides_are_values_of_toml_or_else_texts(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        LEAST,
        "optimizer.lr=1e-6",
        'feedback.kinds=["unknown_tool"]',
        "tasks=runs/b",
        "objective.distill.trust=true",
        "repair.tries=2",
    )
    assert config.optimizer.lr == 1e-6
    assert config.feedback.kinds == ("unknown_tool",)
    assert config.tasks == Path("runs/b")
    assert config.objective.distill.trust
    assert config.repair is not None


def test_a_file_that_is_missing_or_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"run\.toml: no TOML: "):
        load(tmp_path, "steps = = 2")
