"""The no-box test of membership: an exact test of whether a release depends on who was in the table."""
