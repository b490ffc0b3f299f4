"""Give an agent tools in a sandbox, and keep what it did with them."""
