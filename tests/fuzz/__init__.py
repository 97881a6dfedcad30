"""Hostile input, made at random or guided by coverage: ``python -m tests.fuzz``."""
