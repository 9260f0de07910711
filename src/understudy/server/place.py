"""Where a server's state is: beside its `server.yml`, or in the folder of the one project that it serves.

The configuration is not read for it: a token can be revoked while a declaration is broken.
"""

from __future__ import annotations

from pathlib import Path

CONFIG = "server.yml"
STATE = "server.db"


def state_beside(folder: Path) -> Path:
    """The `server.db` of a folder."""
    return folder.resolve() / STATE


def state_of(given: Path) -> Path:
    """The `server.db` of the server that a server.yml, a declaration, or the folder of either stands for."""
    return state_beside(given if given.is_dir() else given.parent)
