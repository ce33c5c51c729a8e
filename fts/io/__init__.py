"""A user's file -> Observations: text, .npz, .mat, NetCDF, Parquet; understood without doubt, or refused."""
