"""Run untrusted code within limits: the promise, the back ends, the choice between them."""
