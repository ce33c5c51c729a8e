"""Figures and tables of the book: the style, then one file per chapter."""
