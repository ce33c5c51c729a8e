"""Frozen field -> a function q(u) that no library lists: trees, their search, the choice among them."""
