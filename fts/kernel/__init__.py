"""Observations -> FrozenField in closed form: covariance, slices left out, search, posterior. No torch."""
