"""How long Muon's step takes on clusters that are not here, by the plan that it would carry out."""
