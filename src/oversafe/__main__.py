"""``python -m oversafe``: the command line."""

from oversafe.cli import main

if __name__ == "__main__":
    main()
