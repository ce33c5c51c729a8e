"""The truth: problems, their solvers, reference trajectories and what a protocol observes of them."""
