"""Competing methods, each from Observations to a Selection."""
