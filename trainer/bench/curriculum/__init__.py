"""Measure what choosing prompts is worth, on policies whose skill is simulated."""
