"""Samplers: they keep real rows and draw new ones between them."""
