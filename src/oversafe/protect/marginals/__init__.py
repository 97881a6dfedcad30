"""Synthesizers that learn counts of a few columns at a time."""
