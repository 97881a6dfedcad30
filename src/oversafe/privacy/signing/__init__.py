"""Manifests, their signatures, and who vouches for a release."""
