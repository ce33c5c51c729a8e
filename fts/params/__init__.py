"""Settings: what a number means (`types`) and what the paper used (`paper`)."""
