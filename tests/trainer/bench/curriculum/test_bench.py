from pathlib import Path

from trainer.bench.curriculum.bench import measure
from trainer.bench.curriculum.simulate import SimulationConfig, simulate, solve_rate
from trainer.curriculum import CurriculumConfig


def test_skill_grows_by_what_is_practised_and_the_goal_ends_it() -> None:
    config = SimulationConfig(prompts=30, goal=2.0)
    run = list(simulate(CurriculumConfig(), config, seed=0))
    skills = [it.skill for it in run]
    assert skills == sorted(skills)
    assert skills[0] == 1.0
    assert skills[-1] < 2.0
    assert len(run) < config.max_steps
    assert solve_rate(2.0, 2.0, config) == 0.5


def test_the_quick_bench_compares_both_from_the_same_seeds(tmp_path: Path) -> None:
    report = measure(tmp_path, quick=True)
    rows = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    assert [(it["prompts chosen"], it["seed"]) for it in rows] == [
        ("uniform", 0),
        ("uniform", 1),
        ("learnability", 0),
        ("learnability", 1),
    ]
    assert all(it["rollouts to the goal"] for it in rows)
    assert len(report.claims) == 5
