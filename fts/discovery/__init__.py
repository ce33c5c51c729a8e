"""Samples -> an equation with standard errors and a verdict: identified, ambiguous or not identifiable."""
