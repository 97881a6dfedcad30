"""The command line: options in, calls of audit, protect, compare and reproduce, text out."""
