"""`understudy serve`: one process that holds declared tables and answers many analysts."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.interrupt import if_interrupted
from understudy.cli.server_options import by_terminal
from understudy.cli.terminal import say
from understudy.errors import ParameterError

if TYPE_CHECKING:
    from understudy.server.config import ServerConfig

NEEDED = ("fastapi", "httptools", "jinja2", "mcp", "prometheus_client", "python_multipart", "uvicorn")
"""What the extra `understudy[server]` installs."""


def serve(
    file: Annotated[Path | None, typer.Argument(help="The server.yml; without one, see --project.")] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project", "-p", help="Serve this one project, on this machine only, without a server.yml."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65534, help="The port of HTTP; that of the custodian's pages is the next one."
        ),
    ] = None,
    postgres: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Also answer programs that speak Postgres, on this port of this machine."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Look at everything that is needed, and do not serve.")
    ] = False,
) -> None:
    """Serve declared tables to many analysts over HTTP, in a browser and to Postgres' programs, from one budget.

    Without a file, the server.yml of this folder is taken, else the one project in it, for this machine alone.
    """
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if lacking:
        raise ParameterError(
            f"the server needs more packages ({', '.join(lacking)}): pip install 'understudy[server]'"
        )
    config = _config(file, project, port)
    if postgres is not None:
        config = _with_postgres(config, postgres)
    if check:
        from understudy.server.check import check as look

        for line in look(config):
            say(line)
        say("The server can be started.")
        return
    if_interrupted("the server had not started; nothing was charged")
    _check_free(config)
    links = _links(config)
    from understudy.server.run import serve as run

    told = False

    def announce(text: str) -> None:
        nonlocal told
        say(text)
        if links and not told:
            told = True
            say(
                "Open in a browser, each once and within 15 minutes (`understudy token new` makes lasting access):"
            )
            for what, link in links:
                say(f"  {what:<15}{link}")

    run(config, announce=announce)


def _config(file: Path | None, project: Path | None, port: int | None) -> ServerConfig:
    from understudy.server.config import Address, Listen, ServerConfig
    from understudy.server.place import CONFIG

    if file is not None and project is not None:
        raise ParameterError("give a server.yml or --project, not both")
    if project is not None:
        config = ServerConfig.single(project)
    elif file is not None:
        config = ServerConfig.read(file)
    else:
        config = ServerConfig.read(CONFIG) if Path(CONFIG).is_file() else ServerConfig.single(Path())
    if port is None:
        return config
    host, admin = config.listen.http.host, config.listen.admin.host
    listen = Listen(
        http=Address(host, port),
        admin=Address(admin, port + 1),
        postgres=config.listen.postgres,
    )
    return replace(config, listen=listen)


def _with_postgres(config: ServerConfig, port: int) -> ServerConfig:
    """The configuration with a Postgres door at this port, on the address that it has, or else on loopback."""
    from understudy.server.config import Address

    host = config.listen.postgres.host if config.listen.postgres else "127.0.0.1"
    return replace(config, listen=replace(config.listen, postgres=Address(host, port)))


def _check_free(config: ServerConfig) -> None:
    """Say which address is taken before tables are opened; that another server runs is said first."""
    from understudy.server.check import check_free
    from understudy.server.one_server import only_server

    with only_server(config.state, config.sqlite_ledgers):
        for address in config.listen.all.values():
            check_free(address)


def _links(config: ServerConfig) -> list[tuple[str, str]]:
    """One-time links: for the one project of a folder, and where nobody has a custodian's token yet."""
    from understudy.server.logins import link_address
    from understudy.server.store import ServerStore
    from understudy.server.tokens import Tokens

    by = by_terminal()
    scheme = "http" if config.tls is None else "https"
    links: list[tuple[str, str]] = []
    with ServerStore(config.state) as store:
        tokens = Tokens(store)
        now = store.now()
        if config.file is None:
            _, secret = tokens.make_link("you", role="analyst", by=by)
            links.append(("to ask", link_address(scheme, str(config.listen.http), secret)))
        has_custodian = any(
            token.role == "custodian" and token.state(now) == "valid" for token in tokens.all()
        )
        if config.file is None or not has_custodian:
            _, secret = tokens.make_link(by=by)
            links.append(("to look after", link_address(scheme, str(config.listen.admin), secret)))
    return links
