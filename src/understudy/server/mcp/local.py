"""One project for one agent on this machine: the gate in the agent's own child process, without a port.

Whoever starts it could read the table; the agent, which may be a program that sends what it reads elsewhere,
gets released numbers alone. Everything is as on a server: the ledger charges, the session answers, a dear question
waits until somebody at a terminal approves it, and the history is kept. There is one such process, or one server,
for a project at a time.
"""

from __future__ import annotations

import asyncio

from understudy.server.config import ServerConfig
from understudy.server.gate import Gate
from understudy.server.logs import start_logging
from understudy.server.mcp.tools import Toolbox
from understudy.server.one_server import only_server
from understudy.server.run import STOP_SECONDS, run_approved
from understudy.server.served_releases import ServedReleases
from understudy.server.store import ServerStore
from understudy.server.tokens import Token


def serve_agent(config: ServerConfig, *, analyst: str, by: str) -> None:
    """Answer one agent over standard input and output until it closes them. `by` is who started it.

    The agent asks as `analyst`, under a token that is made for it and revoked at its end. Raises as `only_server`,
    `ServerStore` and `ServedTables` do where it cannot start.
    """
    start_logging()
    with only_server(config.state, config.sqlite_ledgers), ServerStore(config.state) as store:
        gate = Gate.opened(config, store)
        try:
            token, _ = gate.tokens.make(analyst, doors=("mcp",), days=1, agent=True, by=by)
            try:
                asyncio.run(_served(gate, token))
            finally:
                gate.tokens.revoke(token.id, by=by)
        finally:
            gate.served.close()


async def _served(gate: Gate, token: Token) -> None:
    from understudy.server.mcp.protocol import on_standard_streams, protocol_server

    server = protocol_server(
        gate, Toolbox(gate, ServedReleases(gate.config.releases)), lambda _: token.caller
    )
    approving = asyncio.create_task(run_approved(gate))
    try:
        await on_standard_streams(server)
    finally:
        await gate.close(STOP_SECONDS)
        approving.cancel()
        await asyncio.gather(approving, return_exceptions=True)
