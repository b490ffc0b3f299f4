"""The commands of `regrow`, one module each."""
