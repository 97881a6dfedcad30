"""What was spent on a data set, written down so that nobody can unwrite it."""
