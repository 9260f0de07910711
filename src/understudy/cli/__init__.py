"""The program `understudy`: arguments turned into the calls that Python makes, one file for each command.

`cli.app` gathers the commands and turns every error into a message and an exit status (0 done, 1 refused with
the reason, 2 wrong usage); `cli.options` holds the options that commands share. No command computes anything
that the library does not: what is printed is a value of the library, as text or, with `--json`, as data.

This is the top of the house: it may import every other room, except the truth itself, which only a Curator
reaches. Commands import what they need when they are called, so that `understudy --help` does not wait for an
engine. Start with `cli.app.main`.
"""
