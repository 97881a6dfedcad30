"""Tests of what a release shows of the tool that made it, each with its error rate."""
