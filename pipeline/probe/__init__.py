"""Try, as a solver might, to get at the deleted code: over the network and in what lies about."""
