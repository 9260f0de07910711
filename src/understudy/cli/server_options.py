"""What the commands about a server share: which server is meant, and who gives the command."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from understudy.server.config import ServerConfig
    from understudy.server.store import ServerStore

ServerFile = Annotated[
    Path,
    typer.Option(
        "--server", "-s", help="The server.yml, the one project that is served, or the folder of either."
    ),
]

HERE = Path()
"""The folder in which the command is given."""


def by_terminal() -> str:
    """Who gives a command at a terminal, for the audit log: the name of the system's user."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        name = "unknown"
    return f"{name} (terminal)"


@contextmanager
def opened_store(server: Path, *, new: bool = False) -> Iterator[ServerStore]:
    """The state of a server; it is made only where `new` says so. The configuration is not read."""
    from understudy.server.place import state_of
    from understudy.server.store import ServerStore

    with ServerStore(state_of(server), new=new) as store:
        yield store


def config_of(server: Path) -> ServerConfig:
    """The configuration of a server.yml or of a folder that has one; else the one project that is named."""
    from understudy.server.config import ServerConfig
    from understudy.server.place import CONFIG

    if server.is_dir():
        return ServerConfig.read(server) if (server / CONFIG).is_file() else ServerConfig.single(server)
    return ServerConfig.single(server) if server.name == "understudy.yml" else ServerConfig.read(server)
