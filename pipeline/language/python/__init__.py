"""Know Python: its symbols, who refers to them, and how to cut them out."""
