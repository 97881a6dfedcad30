"""Points, lines and rays in many dimensions, and where they meet."""
