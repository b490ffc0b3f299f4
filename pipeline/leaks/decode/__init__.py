"""Open what a file may be wrapped in, down to what can be matched; nothing is run or unpacked."""
