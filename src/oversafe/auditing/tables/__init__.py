"""The tables of an audit: what was given, made comparable."""
