"""What serves every room: errors, checks of arguments, sentences, compiled functions."""
