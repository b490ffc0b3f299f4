"""`regrow bench targeted`: what a hint at the faulty turn adds to reinforcement learning."""
