"""Seeded reward hacks and honest controls: what a grader must not pay, and what it must."""
