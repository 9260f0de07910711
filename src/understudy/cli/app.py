"""The command line: assembles the commands of this package into one program and runs it.

Each command has a file of its own, which turns arguments into the same calls that Python makes.

Exit status 0: done; 1: refused, with the reason; 2: the question or the files are wrong.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from typer.exceptions import Abort, Exit, TyperException

from understudy.cli.ask import ask
from understudy.cli.audit import audit
from understudy.cli.check import check
from understudy.cli.demo import demo
from understudy.cli.holdout import holdout, validity_audit
from understudy.cli.init import init
from understudy.cli.ledger import ledger
from understudy.cli.options import as_options
from understudy.cli.plan import plan
from understudy.cli.release import release

INTERRUPTED = 130
"""The exit status that typer gives where the user pressed Ctrl-C."""

app = typer.Typer(
    name="understudy",
    help="A public stand-in for a sensitive table: private answers with honest error bars.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command()(init)
app.command()(check)
app.command()(ask)
app.command()(plan)
app.command()(release)
app.command()(demo)
app.add_typer(ledger, name="ledger")
app.add_typer(audit, name="audit")
app.add_typer(holdout, name="holdout")
audit.command("validity")(validity_audit)


def main() -> None:
    """Run the program; every failure is a message and an exit status, never a traceback."""
    from understudy.errors import LedgerError, RefusedError, SourceError, UnderstudyError

    try:
        status = app(standalone_mode=False)
    except (RefusedError, SourceError, LedgerError) as error:
        _fail(error, 1)
    except UnderstudyError as error:
        _fail(error, 2)
    except (Abort, KeyboardInterrupt):
        _fail("interrupted", 1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}", 1)
    except TyperException as error:
        _fail(_usage(error), 2)
    except Exit as stop:
        sys.exit(stop.exit_code)
    else:
        if status == INTERRUPTED:
            _fail("interrupted", 1)
        if isinstance(status, int) and status:
            sys.exit(status)


def _usage(error: TyperException) -> str:
    """What is wrong with a command line, and whose help tells how it is meant."""
    context, names = getattr(error, "ctx", None), []
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    if not names:  # told by a command itself
        known = {
            command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands
        }
        names = sys.argv[1:2] if sys.argv[1:2] and sys.argv[1] in known else []
    text = error.format_message()
    return text if text.startswith("Usage: ") else f"{text} (try {' '.join(['understudy', *names])} --help)"


def _fail(error: Exception | str, status: int) -> None:
    kind = type(error).__name__ if isinstance(error, Exception) else "Usage"
    message = as_options(str(error))
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": {"kind": kind, "message": message}}) + "\n")
    else:
        sys.stderr.write(f"understudy: {message}\n")
    sys.exit(status)


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """A public stand-in for a sensitive table: private answers with honest error bars."""
    if show:
        from understudy import __version__

        typer.echo(f"understudy {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


if __name__ == "__main__":
    main()
