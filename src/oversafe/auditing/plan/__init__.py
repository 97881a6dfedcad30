"""Which attack is run on what, and what is not run."""
