"""``python -m oversafe``: the command line, where the script is not on the path."""

from oversafe.cli.program import main

if __name__ == "__main__":
    main()
