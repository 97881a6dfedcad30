"""Attacks that tell whose record was in the training table."""
