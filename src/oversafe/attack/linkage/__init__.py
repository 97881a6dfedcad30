"""Linkability, singling out and attribute inference, and their rates."""
