"""Runs of every method on every problem, their records, the paper's values, and what verifies them."""
