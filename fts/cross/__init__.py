"""Observations -> two fields from disjoint halves -> cross moments -> selection without the noise's bias."""
