"""Say how hard Tasks are, from what attempts at them came to."""
