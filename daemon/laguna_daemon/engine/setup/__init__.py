"""Putting the engine on the machine: its Python environment, its small model, checkpoints from the hub."""
