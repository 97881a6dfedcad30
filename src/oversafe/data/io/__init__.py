"""Where tables come from and go to: files, databases, and the declared format they are read in."""
