"""Copies of deleted code in the places where models and people have found some."""
