"""Competing methods, each from Observations to a Selection: a file that registers itself with its settings.

Every module directly in this folder is imported with `fts.methods` and does without torch; what trains a
network stands in `training/` and is imported when the method runs.
"""
