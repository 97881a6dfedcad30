"""Protections of one table beside each other."""
