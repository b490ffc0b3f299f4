"""Measure what the issues claim of the trainer, one module a bench."""
