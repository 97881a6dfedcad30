"""Measurements against the peers, run from the checkout: ``python -m benchmarks NAME``."""
