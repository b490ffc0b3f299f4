"""`regrow bench trainer`: tokens trained a second, what hints cost, what the loss holds."""
