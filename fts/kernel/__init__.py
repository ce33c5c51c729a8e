"""Observations -> posterior of a Gaussian process -> frozen field, in closed form. No torch."""
