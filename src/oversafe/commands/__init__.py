"""The commands of the command line, each a module, and what they share."""
