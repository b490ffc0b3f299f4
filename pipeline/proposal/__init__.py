"""Propose a manifest entry for a project by trying."""
