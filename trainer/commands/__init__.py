"""What `regrow` has from the trainer; torch is imported when a command runs."""
