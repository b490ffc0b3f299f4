"""Fixtures for tests in any folder."""

pytest_plugins = ("tests.pipeline.engines",)
