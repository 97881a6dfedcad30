"""The local web page, ``oversafe app`` (extra ``app``): audit or protect a table without the command line."""
