"""One module per paper: what is run, and how its tables are put beside the published ones."""
