"""``python -m lapwing``: the command line."""

from lapwing.cli.main import main

if __name__ == "__main__":
    main()
