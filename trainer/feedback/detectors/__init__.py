"""Detect behaviours, a module each family of them."""
