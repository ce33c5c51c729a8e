"""WeakSystem -> Selection: sparse regression, stability-validated selection, its ablations, its refits."""
