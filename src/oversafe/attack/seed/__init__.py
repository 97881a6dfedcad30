"""The seed that made a release: tried one by one, against what the rows give away of the numbers drawn."""
