"""Terms, a frozen field and the raw samples -> the equation integrated and fitted to the samples."""
