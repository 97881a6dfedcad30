"""Neighbouring tables on the whole way to a release, with noisy answers that do not depend on them.

With the same answers everything that leaves must be the same, and no true answer may move by more than was paid.
``python -m tests.replay`` tries many pairs; ``tests/test_replay.py`` has a few in the default tier.
"""
