"""Ask a judge model about attempts that the rules leave open."""
