"""Observations -> FrozenField by training, the paper's way and two others. Importing it imports torch."""
