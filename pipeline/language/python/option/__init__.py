"""Take an option out of functions and commands: fold its default, cut what is said of it."""
