"""What every selector shares: sparse regression, moments, support search, jackknife, instruments."""
