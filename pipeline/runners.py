"""Run the Beam graph: presets that name the runner, so that no default can change under us."""

from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import create_runner

from pipeline.config import Settings
from pipeline.task.origin import Repo
from pipeline.transforms import build

# `DirectRunner` picks among runners by the graph's content, and one of them is downloaded at run
# time. This one is in the package.
LAPTOP = "FnApiRunner"


def run_laptop(repos: Sequence[Repo], settings: Settings) -> None:
    """Run the graph in this process; the parallelism is ours, `settings.jobs` sandboxes.

    Raises:
        SandboxStoppedError or RuntimeError: the run was stopped, or a step has a bug.
    """
    # No argument list: the command line's own must not be read as Beam options.
    with beam.Pipeline(runner=create_runner(LAPTOP), options=PipelineOptions([])) as root:
        build(root, repos, settings)
