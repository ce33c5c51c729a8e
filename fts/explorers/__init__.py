"""Widgets on frozen fields whose numerics run in the reader's browser."""
