"""The training loop, from one step to a whole run."""
