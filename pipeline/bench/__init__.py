"""Measure what the README and the issues claim, one module a bench."""
