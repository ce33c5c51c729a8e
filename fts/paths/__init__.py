"""Support along a training: what a method would have reported, had it been stopped at that step."""
