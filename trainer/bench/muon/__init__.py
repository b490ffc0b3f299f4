"""How fast Muon steps on one core, beside other implementations of it."""
