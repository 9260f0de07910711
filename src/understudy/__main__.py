"""`python -m understudy` is the program `understudy`."""

from understudy.cli.start import main

if __name__ == "__main__":
    main()
