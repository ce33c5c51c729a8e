"""FrozenField -> WeakSystem: test functions on patches, assembly, error bounds, automatic geometry."""
