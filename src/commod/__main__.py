"""Run the command line with `python -m commod`."""

from commod.cli import main

if __name__ == "__main__":
    main()
