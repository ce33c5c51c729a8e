"""WeakSystem -> Selection: stability-validated weak selection, its ablations, and selection by two fields."""
