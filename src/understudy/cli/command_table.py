"""The commands of the program, each made from its signature when it is wanted.

Making one takes a millisecond or more, because its annotations are evaluated, and a command line wants one or two
of thirty. The list of all commands needs only their names, groups and first sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from typer import main as typer_main

if TYPE_CHECKING:
    from typer import Typer
    from typer._click.core import Command
    from typer.models import CommandInfo, TyperInfo


@dataclass(frozen=True)
class Listed:
    """What a list of commands says of one: its `name`, `help` and `panel`, the heading that it stands under."""

    name: str
    help: str
    panel: str | None
    hidden: bool


class CommandTable(MutableMapping[str, "Command"]):
    """The commands of an application by name, in their order; each is made once, when it is looked up."""

    def __init__(self, app: Typer) -> None:
        self._app = app
        self._made: dict[str, Command] = {}
        self._known: dict[str, CommandInfo | TyperInfo] = {}
        for command in app.registered_commands:
            name = command.name or typer_main.get_command_name(getattr(command.callback, "__name__", ""))
            self._known[name] = command
        for group in app.registered_groups:
            self._known[str(group.name)] = group

    def __getitem__(self, name: str) -> Command:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(self._known[name])
        return made

    def __setitem__(self, name: str, command: Command) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        if self._made.pop(name, None) is None and name not in self._known:
            raise KeyError(name)
        self._known.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._known, **self._made})

    def __len__(self) -> int:
        return len({**self._known, **self._made})

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._made

    def listed(self) -> list[Listed]:
        """What a list of the commands says of each, in their order. Makes none of them."""
        return [_listed(name, self._known.get(name), self._made.get(name)) for name in self]

    def _make(self, info: CommandInfo | TyperInfo) -> Command:
        app: Any = self._app
        settings = {
            "pretty_exceptions_short": app.pretty_exceptions_short,
            "rich_markup_mode": app.rich_markup_mode,
        }
        if _is_group(info):
            suggests = app.suggest_commands
            return typer_main.get_group_from_info(info, suggest_commands=suggests, **settings)  # type: ignore[arg-type]
        return typer_main.get_command_from_info(info, **settings)  # type: ignore[arg-type]


def listed(commands: Mapping[str, Command]) -> list[Listed]:
    """What a list of `commands` says of each of them, in their order."""
    if isinstance(commands, CommandTable):
        return commands.listed()
    return [_listed(name, None, command) for name, command in commands.items()]


def with_table(app: Typer) -> Any:
    """The group of all commands of an application, as the parser of command lines has it.

    It is what `typer.main.get_command` makes, but for its `commands`, which are a `CommandTable`.
    """
    bare = copy(app)
    bare.registered_commands, bare.registered_groups = [], []
    group: Any = typer_main.get_command(bare)
    group.commands = CommandTable(app)
    return group


def _is_group(info: CommandInfo | TyperInfo) -> bool:
    return hasattr(info, "typer_instance")


def _listed(name: str, info: Any, made: Any) -> Listed:
    if made is not None:
        return Listed(name, made.help or "", getattr(made, "rich_help_panel", None), made.hidden)
    if _is_group(info):
        solved = typer_main.solve_typer_info_defaults(info)
        return Listed(name, solved.help or "", _panel(solved), bool(solved.hidden))
    return Listed(name, info.help or getdoc(info.callback) or "", _panel(info), info.hidden)


def _panel(info: Any) -> str | None:
    return info.rich_help_panel if isinstance(info.rich_help_panel, str) else None
