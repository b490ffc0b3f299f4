"""Prove by content that deleted code is nowhere that a solver can look."""
