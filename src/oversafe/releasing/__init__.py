"""From a file to a protected file."""
