"""Muon: each matrix of a model steps along its gradient's momentum, orthogonalized."""
