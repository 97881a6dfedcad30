"""Which rows of an augmented table are real: what each row shows by itself and beside the others."""
