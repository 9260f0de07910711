"""`understudy mcp`: an agent's program, over standard input and output, at a server or at one project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.server_options import by_terminal
from understudy.errors import ParameterError

NEEDED = ("mcp", "fastapi", "uvicorn")
"""What `--project` needs beside the library; a bridge to a server needs nothing."""


def mcp(
    url: Annotated[
        str,
        typer.Option("--url", help="The server, as `understudy serve` prints it: hand messages on to it."),
    ] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="A file with the token, mode 0600; else UNDERSTUDY_TOKEN, else ~/.config/understudy/tokens.",
        ),
    ] = None,
    ca: Annotated[
        Path | None, typer.Option("--ca", help="The certificates of an authority of your own, in PEM.")
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option("--project", "-p", help="Serve this one project to the agent, without a server."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="With --project: the analyst under whose name the agent asks.")
    ] = "agent",
) -> None:
    """Let an AI agent ask over standard input and output, as programs start tools of the Model Context Protocol.

    Programs that can send a header need no bridge: their address is that of the server followed by /mcp.
    """
    if bool(url) == (project is not None):
        raise ParameterError("give either --url, for a server, or --project, for a project of your own")
    if project is None:
        _bridge(url, token_file, ca)
        return
    if token_file is not None or ca is not None:
        raise ParameterError("--token-file and --ca go with --url: a project of your own needs no token")
    _local(project, name)


def _bridge(url: str, token_file: Path | None, ca: Path | None) -> None:
    from understudy.client.address import ServerAddress
    from understudy.client.agent_bridge import PATH, AgentBridge
    from understudy.client.connect import PATIENCE_SECONDS, TIMEOUT_SECONDS
    from understudy.client.token_file import found_token, token_in
    from understudy.client.transport import Transport

    address = ServerAddress.read(url.rstrip("/").removesuffix(PATH))
    token = found_token(address, None if token_file is None else token_in(token_file))
    transport = Transport(address, token, timeout=TIMEOUT_SECONDS, patience=PATIENCE_SECONDS, ca=ca)
    AgentBridge(transport, sys.stdout).run(sys.stdin)
    transport.close()


def _local(project: Path, name: str) -> None:
    from importlib.util import find_spec

    lacking = [package for package in NEEDED if find_spec(package) is None]
    if lacking:
        raise ParameterError(
            f"--project needs more packages ({', '.join(lacking)}): pip install 'understudy[server]'"
        )
    from understudy.server.config import ServerConfig
    from understudy.server.mcp.local import serve_agent

    serve_agent(ServerConfig.single(project), analyst=name, by=by_terminal())
