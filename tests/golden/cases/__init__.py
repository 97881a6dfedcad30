"""The golden cases, a module for each room."""
