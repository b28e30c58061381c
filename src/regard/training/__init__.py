"""The one training loop: optimisation, checkpoints, run folders, metrics."""
