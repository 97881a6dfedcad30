"""Anonymization by grouping, suppression and swapping."""
