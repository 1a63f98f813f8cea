"""`python -m dicgrl` is the command `dicgrl`."""

from dicgrl.cli import main

if __name__ == "__main__":
    main()
