"""Turn repositories into Parquet shards of feature-deletion tasks."""

import os

# GitPython reads this at its import, which would else fail wherever there is no git.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
