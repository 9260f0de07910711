"""The command line: assembles the commands of this package into one program and runs it.

Each command has a file of its own, which turns arguments into the same calls that Python makes.

Exit status 0: done; 1: refused, with the reason; 2: the question or the files are wrong; 130: interrupted.
"""

from __future__ import annotations

import json
import sys
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, NoReturn

import typer
from typer.exceptions import Abort, Exit, TyperException

from understudy.cli.approvals import approvals, approve, deny
from understudy.cli.ask import ask
from understudy.cli.audit import audit
from understudy.cli.check import check
from understudy.cli.command_table import with_table
from understudy.cli.demo import demo
from understudy.cli.help import BEGINNING, ProgramCommand, ProgramGroup, help_settings
from understudy.cli.holdout import holdout, validity_audit
from understudy.cli.init import init
from understudy.cli.interrupt import INTERRUPTED, ignore_further, interruptible
from understudy.cli.keys import keys
from understudy.cli.ledger import ledger
from understudy.cli.mcp import mcp
from understudy.cli.options import as_options
from understudy.cli.plan import plan
from understudy.cli.release import release
from understudy.cli.serve import serve
from understudy.cli.server import server
from understudy.cli.start_table import start
from understudy.cli.terminal import say
from understudy.cli.token import token

START, ASK, PUBLISH, SERVE, VALIDATE = "Start", "Ask", "Publish", "Serve", "Validate"
LOOK_AFTER = "Look after"
"""The groups of commands in the help, in their order."""

app = typer.Typer(
    name="understudy",
    cls=ProgramGroup,
    help="A public stand-in for a sensitive table: private answers with honest error bars.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command(cls=ProgramCommand, rich_help_panel=START)(start)
app.command(cls=ProgramCommand, rich_help_panel=START)(init)
app.command(cls=ProgramCommand, rich_help_panel=START)(check)
app.command(cls=ProgramCommand, rich_help_panel=START)(demo)
app.command(cls=ProgramCommand, rich_help_panel=ASK)(ask)
app.command(cls=ProgramCommand, rich_help_panel=ASK)(keys)
app.command(cls=ProgramCommand, rich_help_panel=ASK)(plan)
app.command(cls=ProgramCommand, rich_help_panel=PUBLISH)(release)
app.command(cls=ProgramCommand, rich_help_panel=SERVE)(serve)
app.command(cls=ProgramCommand, rich_help_panel=SERVE)(mcp)
app.command(cls=ProgramCommand, rich_help_panel=SERVE)(approve)
app.command(cls=ProgramCommand, rich_help_panel=SERVE)(deny)
app.add_typer(approvals, name="approvals", rich_help_panel=SERVE)
app.add_typer(token, name="token", rich_help_panel=SERVE)
app.add_typer(server, name="server", rich_help_panel=SERVE)
app.add_typer(holdout, name="holdout", rich_help_panel=VALIDATE)
app.add_typer(audit, name="audit", rich_help_panel=VALIDATE)
app.add_typer(ledger, name="ledger", rich_help_panel=LOOK_AFTER)
audit.command("validity", cls=ProgramCommand)(validity_audit)


@cache
def program() -> Any:
    """The commands as the parser of command lines has them; each is made from its signature when it is wanted."""
    return with_table(app)


def main() -> None:
    """Run the program; every failure is a message and an exit status, never a traceback."""
    with interruptible() as interruption:
        try:
            status = program()(standalone_mode=False, prog_name="understudy", **help_settings())
        except BaseException as stop:
            if interruption.happened or isinstance(stop, (Abort, KeyboardInterrupt)):
                status = INTERRUPTED
            else:
                _end(stop)
        if status == INTERRUPTED:  # also what typer makes of a KeyboardInterrupt
            ignore_further()
            _fail(interruption.told(), INTERRUPTED)
    if isinstance(status, int) and status:
        sys.exit(status)


def _end(stop: BaseException) -> NoReturn:
    """Leave with the message and the exit status of a failure."""
    from understudy.errors import LedgerError, RefusedError, SourceError, StoreError, UnderstudyError

    if isinstance(stop, (RefusedError, SourceError, LedgerError, StoreError)):
        _fail(stop, 1)
    if isinstance(stop, UnderstudyError):
        _fail(stop, 2)
    if isinstance(stop, BrokenPipeError):
        sys.exit(1)
    if isinstance(stop, OSError):
        _fail(f"{stop.filename or 'a file'}: {stop.strerror or type(stop).__name__}", 1)
    if isinstance(stop, TyperException):
        _fail(_usage(stop), 2)
    if isinstance(stop, Exit):
        sys.exit(stop.exit_code)
    raise stop


def _usage(error: TyperException) -> str:
    """What is wrong with a command line, and whose help tells how it is meant."""
    context, names = getattr(error, "ctx", None), []
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    if not names:  # told by a command itself, or by the parser of its options
        names = _named(sys.argv[1:])
    text = error.format_message()
    possible = getattr(error, "possibilities", None)
    if possible:
        near = get_close_matches(getattr(error, "option_name", ""), possible, n=2, cutoff=0.0)
        text = f"{getattr(error, 'message', text)}. Did you mean {' or '.join(near)}?"
    return text if text.startswith("Usage: ") else f"{text} (try {' '.join(['understudy', *names])} --help)"


def _named(words: list[str]) -> list[str]:
    """The command, and the one within it, that the words of a command line begin with."""
    names: list[str] = []
    commands: dict[str, Any] = getattr(program(), "commands", {})
    for word in words:
        if word not in commands:
            break
        names.append(word)
        commands = getattr(commands[word], "commands", {})
    return names


KINDS = {1: "OSError", 2: "Usage", INTERRUPTED: "Interrupted"}
"""The kind of an error that is told by its words alone, for `--json`."""


def _fail(error: Exception | str, status: int) -> NoReturn:
    kind = type(error).__name__ if isinstance(error, Exception) else KINDS[status]
    message = as_options(str(error))
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": {"kind": kind, "message": message}}) + "\n")
    elif message.startswith("Usage: "):  # the help of a group that was named without one of its commands
        say(message, err=True)
    else:
        say(f"understudy: {message}", err=True, hang=2)
    sys.exit(status)


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """A public stand-in for a sensitive table: private answers with honest error bars."""
    if show:
        from understudy import __version__

        say(f"understudy {__version__}")
    elif context.invoked_subcommand is None:
        from understudy import __version__

        say(BEGINNING.format(version=__version__))


if __name__ == "__main__":
    main()
