"""Adapt the pipeline to the language a repository is written in."""
