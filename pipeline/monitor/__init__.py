"""Tell from what an agent did, and from its patch, whether it cheated."""
