"""Help in plain text: commands and options in groups, examples at the end that can be pasted.

It is folded at words to the width of the terminal, at most 100 columns, and has no colours: it can be searched,
piped and copied. Examples are never folded, since a folded command cannot be pasted.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

from understudy.cli.command_table import Listed, listed
from understudy.cli.examples import EXAMPLES
from understudy.cli.option_groups import GROUPS
from understudy.cli.terminal import WIDTH, columns_of

if TYPE_CHECKING:
    from typer._click.core import Command, Context, Parameter
    from typer._click.formatting import HelpFormatter

WIDEST = 100
"""Columns that help takes at most: longer lines are hard to read."""

KINDS = {
    "str": "text",
    "list[str]": "text",
    "path": "file",
    "float": "number",
    "float range": "number",
    "int": "whole number",
    "int range": "whole number",
}
"""The values of options, as people call them."""

BEGINNING = """\
understudy {version}: a public stand-in for a sensitive table. It answers questions privately, with error bars.

Begin with
  understudy start people.csv       buy what a declaration needs, privately
  understudy init people.csv        or draft one, to be reviewed
  understudy check                  see whether declaration and table agree
  understudy ask 'count by sex'     get a first private answer

No table at hand? understudy demo invents a town and shows everything on it.
understudy --help lists all commands; understudy COMMAND --help explains one, with examples."""
"""What the program says where it is called without a command."""


def help_settings() -> dict[str, Any]:
    """How help is laid out: the width of the terminal where there is one."""
    return {"max_content_width": WIDEST, "terminal_width": min(WIDEST, columns_of(sys.stdout) or WIDTH)}


def path_of(context: Context) -> str:
    """The command that a context is of, such as `ledger show`; empty for the program itself."""
    names = []
    while context.parent is not None:
        names.insert(0, context.info_name or "")
        context = context.parent
    return " ".join(names)


class ProgramCommand(TyperCommand):
    """A command whose options are in groups, with examples at the end of its help."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        _write_examples(path_of(ctx), formatter)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """`{questions}...` as `QUESTIONS...`."""
        return [
            re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), piece)
            for piece in super().collect_usage_pieces(ctx)
        ]


class ProgramGroup(TyperGroup):
    """Commands in groups, each with a whole sentence; a name that is not one of them is told which are near."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for command in listed(self.commands):
            if not command.hidden:
                groups.setdefault(command.panel or "Commands", []).append((command.name, _sentence(command)))
        width = max((len(name) for rows in groups.values() for name, _ in rows), default=0)
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", told) for name, told in rows])
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        _write_examples(path_of(ctx), formatter)

    def list_commands(self, ctx: Context) -> list[str]:
        """Their names alone: none is made for it."""
        return list(self.commands)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        wanted = args[0]
        if wanted in self.commands or wanted.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = self._near(wanted)
        told = f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
        return ctx.fail(f"No such command {wanted!r}.{told}")

    def _near(self, wanted: str) -> list[str]:
        """Commands of nearly this name, and those of groups that have it: `verify` is `ledger verify`."""
        nested = [
            f"{name} {inner}"
            for name, group in self.commands.items()
            if isinstance(group, TyperGroup)
            for inner in group.commands
            if get_close_matches(wanted, [inner], cutoff=0.85)
        ]
        return [*get_close_matches(wanted, list(self.commands), cutoff=0.6), *nested][:3]


def _sentence(command: Listed) -> str:
    """The first sentence of a command's help, whole."""
    first = command.help.strip().split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=\.) ", first)[0]


def _write_options(command: Command, ctx: Context, formatter: HelpFormatter) -> None:
    """Arguments, and options in the groups of their command; those without one come last."""
    groups = GROUPS.get(path_of(ctx), {})
    place = {name: heading for heading, names in groups.items() for name in names}
    found: dict[str, list[tuple[str, str]]] = {}
    for heading in ("Arguments", *groups, "Options"):
        found[heading] = []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            argument = parameter.param_type_name == "argument"
            heading = "Arguments" if argument else place.get(parameter.name or "", "Options")
            found[heading].append((_kind(record[0], parameter), record[1]))
    for heading, rows in found.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=27)


def _kind(declared: str, parameter: Parameter) -> str:
    """`--rows <int range>` as `--rows <whole number>`; an argument by its name alone."""
    if parameter.param_type_name == "argument":
        return declared.split(" <")[0].upper()
    return re.sub(r"<([^>]*)>", lambda kind: f"<{KINDS.get(kind[1], kind[1])}>", declared)


def _write_examples(path: str, formatter: HelpFormatter) -> None:
    shown = EXAMPLES.get(path, ())
    if shown:
        with formatter.section("Examples"):
            for line in shown:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
