"""Deliberate faults, applied one at a time to a copy of the package, and the tests that must notice them.

``python -m tests.mutants curated`` runs the list in ``tests/mutants/curated``, ``python -m tests.mutants random`` as
many faults as asked for from the syntax trees. A fault that no test notices is a promise that nobody holds us to.
"""
