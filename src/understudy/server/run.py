"""A running server: its tables, its store, and its doors, from start to stop.

Two ports, a third where Postgres is spoken, one event loop. On SIGTERM or SIGINT no new work is taken, what is
under way (and may be debited) is finished and answered within `STOP_SECONDS`, and everything is closed. A server
that is killed instead loses nothing either: what was debited is in the ledger, and its request id gets the answer
from the next one.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn
import uvloop
from fastapi import FastAPI

from understudy.server.config import Address, ServerConfig
from understudy.server.gate import Gate
from understudy.server.http.app import Services, admin_app, http_app
from understudy.server.http.asks import AskLane
from understudy.server.http.protocol import LimitedProtocol
from understudy.server.http.security import App, Guard, hosts_of
from understudy.server.logs import LOG, log_failure, start_logging
from understudy.server.mcp.door import AgentInterface
from understudy.server.metrics import Metrics
from understudy.server.one_server import only_server
from understudy.server.pages.door import add_pages
from understudy.server.problems import Problem
from understudy.server.store import ServerStore

if TYPE_CHECKING:
    from understudy.server.pg.door import PgInterface

STOP_SECONDS = 20.0
"""Within which a server that is told to stop finishes what it has begun."""

APPROVED_SECONDS = 0.5
"""Between two looks for questions that were approved."""

SWITCH_SECONDS = 0.001
"""How long a thread may hold the interpreter while others wait: a look must not make the loop wait for long."""


def serve(config: ServerConfig, *, announce: Callable[[str], None]) -> None:
    """Serve until a signal says stop. `announce` is told, in sentences, where the doors are.

    Raises as `only_server`, `ServerStore` and `ServedTables` do where the server cannot start, and an `OSError`
    where an address is taken.
    """
    start_logging()
    sys.setswitchinterval(SWITCH_SECONDS)
    with only_server(config.state, config.sqlite_ledgers), ServerStore(config.state) as store:
        gate = Gate.opened(config, store)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(Service(gate).run(announce))
        finally:
            gate.served.close()


class Service:
    """The doors of one gate on one event loop."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.metrics = Metrics()
        self.services = Services.behind(gate, self.metrics)
        self.stop = asyncio.Event()
        self.addresses: dict[str, Address] = {}
        self.agents: AgentInterface | None = None
        self._approving: asyncio.Task[None] | None = None
        self._postgres: PgInterface | None = None

    async def run(self, announce: Callable[[str], None], *, signals: bool = True) -> None:
        """Open the doors, and keep them open until `stop` is set or a signal comes; then close in order."""
        config = self.gate.config
        if signals:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop.set)
        apps = {"http": http_app(self.services), "admin": admin_app(self.services)}
        for name, app in apps.items():
            add_pages(app, self.gate, door=name)
        self.agents = self._agent_door(apps["http"])
        doors = {
            "http": (self.agents, config.listen.http),
            "admin": (apps["admin"], config.listen.admin),
        }
        servers: list[_Server] = []
        tasks: list[asyncio.Task[None]] = []
        try:
            for name, (app, address) in doors.items():
                listening = bound(address)
                self.addresses[name] = Address(address.host, listening.getsockname()[1])
                servers.append(_Server(self._configured(app, name, address)))
                tasks.append(asyncio.create_task(servers[-1].serve(sockets=[listening])))
            if config.listen.postgres is not None:
                await self._open_postgres(config.listen.postgres)
            self._approving = asyncio.create_task(run_approved(self.gate))
            tasks.append(self._approving)
            scheme = "http" if config.tls is None else "https"
            announce(f"Serving {', '.join(self.gate.served.tables)} at {scheme}://{self.addresses['http']}")
            if "postgres" in self.addresses:
                place = self.addresses["postgres"]
                announce(
                    f"Programs of Postgres: psql 'host={place.host} port={place.port} user=NAME dbname=understudy'"
                )
            LOG.info("started", extra={name: str(address) for name, address in self.addresses.items()})
            await self.stop.wait()
        finally:
            LOG.info("stopping")
            ended = await self._closed()
            for server in servers:
                server.should_exit = True
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.agents.close()
            await self.services.releases.close()
            self.services.boards.close()
            LOG.info("stopped", extra={"finished": ended})

    async def _open_postgres(self, address: Address) -> None:
        """Open the door for programs that speak Postgres, and the desk behind it."""
        # Late: a parser and a catalog, which a server without this door need not load.
        from understudy.answer.around_question import shared_desk
        from understudy.server.pg.asking import SharedDesk
        from understudy.server.pg.door import PgInterface
        from understudy.server.pg.served_catalog import ServedCatalog
        from understudy.server.pg.synthetic import SyntheticRows

        listening = bound(address)
        self.addresses["postgres"] = Address(address.host, listening.getsockname()[1])
        catalog = ServedCatalog(self.gate.served, self.services.releases, shared_desk())
        synthetic = SyntheticRows(shared_desk(), self.services.releases)
        shared = SharedDesk(self.gate, catalog, synthetic)
        self._postgres = PgInterface(self.gate, shared, self.metrics)
        await self._postgres.open(listening)
        asyncio.get_running_loop().run_in_executor(None, catalog.start)  # nobody waits for it

    async def _closed(self) -> bool:
        """Refuse new work and finish what is under way, at every door; returns whether all of it ended in time."""
        closing = None if self._postgres is None else asyncio.create_task(self._postgres.close())
        ended = await self.gate.close(STOP_SECONDS)
        if self._approving is not None:
            self._approving.cancel()
        if closing is not None:
            await closing
        return ended

    def _agent_door(self, app: FastAPI) -> AgentInterface:
        """The port of HTTP: agents at /mcp, then the lane of questions, then everything else."""
        lane = AskLane(app, app.state)
        hosts = self._hosts(self.gate.config.listen.http)
        return AgentInterface(lane, self.gate, self.services.releases, app.state.identification, hosts=hosts)

    def _hosts(self, address: Address) -> frozenset[str]:
        """The names under which a port may be called; none where a proxy checks them, or any may call."""
        return frozenset() if self.gate.config.behind else hosts_of(address.host)

    def _configured(self, app: App, name: str, address: Address) -> uvicorn.Config:
        config = self.gate.config
        guarded = Guard(
            app,
            hosts=self._hosts(address),
            metrics=self.metrics,
            door=name,
            is_encrypted=config.tls is not None or bool(config.behind),
        )
        return uvicorn.Config(
            guarded,
            http=LimitedProtocol,
            loop="none",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=bool(config.behind),
            forwarded_allow_ips=[str(network) for network in config.behind],
            ssl_certfile=None if config.tls is None else str(config.tls.certificate),
            ssl_keyfile=None if config.tls is None else str(config.tls.key),
            ssl_version=ssl.PROTOCOL_TLS_SERVER,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
            backlog=256,
        )


async def run_approved(gate: Gate) -> None:
    """Ask what custodians approve, here or with a command at a terminal, until the task is cancelled."""
    while True:
        try:
            asked = await gate.run_approved()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # whatever it is, the next approval is looked for
            if not (isinstance(error, Problem) and error.code == "stopping"):
                log_failure(error, "approvals")
            asked = False
        if not asked:
            await asyncio.sleep(APPROVED_SECONDS)


class _Server(uvicorn.Server):
    """uvicorn's server without its own signal handlers: two of them share a process."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await self._serve(sockets)


def bound(address: Address) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(256)
        listening.setblocking(False)  # noqa: FBT003  # its only parameter
    except OSError:
        listening.close()
        raise
    return listening
