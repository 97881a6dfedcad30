"""Synthesizers that train neural networks."""
