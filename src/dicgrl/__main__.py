"""`python -m dicgrl` is the command `dicgrl`."""

from dicgrl.cli.app import main

if __name__ == "__main__":
    main()
