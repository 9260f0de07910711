"""Everything that a server needs, looked at without listening: `understudy serve --check`."""

from __future__ import annotations

import socket
import ssl
from contextlib import ExitStack

from understudy.declaration.file import read as read_declaration
from understudy.declaration.outline import unreviewed
from understudy.errors import DeclarationError, StoreError
from understudy.ledger.declared import check_ledger
from understudy.percent import percent_of
from understudy.project import open_project
from understudy.server.audit_log import AuditLog
from understudy.server.config import Address, ServerConfig
from understudy.server.one_server import only_server
from understudy.server.served_tables import check_session_noise
from understudy.server.store import ServerStore


def check(config: ServerConfig) -> list[str]:
    """What was found, a sentence each; raises where a server would not start, with what to do.

    Tables are opened and no row of them is read. Where a server is running already its addresses and locks are
    not looked at.
    """
    found = [line for name in config.tables for line in _check_table(config, name)]
    if config.tls is not None:
        _check_tls(config)
        found.append("The certificate and its key belong together.")
    found += _check_state(config)
    with ExitStack() as held:
        try:
            held.enter_context(only_server(config.state, config.sqlite_ledgers))
        except StoreError as busy:
            return [*found, f"A server is running: {busy}."]
        for address in config.listen.all.values():
            check_free(address)
    doors = ", ".join(f"{name} {address}" for name, address in config.listen.all.items())
    return [*found, f"Its addresses are free: {doors}."]


def check_free(address: Address) -> None:
    """Refuse an address that another program listens on, or that this machine does not have."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address.host, address.port))
            trial.listen(1)
        except OSError as error:
            raise StoreError(
                f"{address} cannot be listened on ({error.strerror or type(error).__name__})",
                remedy="Stop the program that uses it, or choose another: `listen:` in server.yml, or --port",
            ) from None


def _check_table(config: ServerConfig, name: str) -> list[str]:
    path = config.tables[name]
    declaration = read_declaration(path)
    check_ledger(declaration, base=path.parent, file=path)
    project = open_project(path)
    check_session_noise(project, config.session.noise)
    left, cap = project.ledger.remaining, project.ledger.budget.cap
    part = percent_of(left.units, cap.units)
    found = [f"{name}: {len(declaration.domain)} attributes; {part} of the budget is left."]
    marked = unreviewed(path.read_text(encoding="utf-8"))
    if marked:
        found.append(
            f"{name}: {len(marked)} lines are still marked READ OFF THE DATA; `understudy check` names them."
        )
    if project.curator.reading is None:
        found.append(f"{name}: the table was never read through; `understudy check --read` does it.")
    return found


def _check_tls(config: ServerConfig) -> None:
    assert config.tls is not None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(config.tls.certificate, config.tls.key)
    except (OSError, ValueError):
        raise DeclarationError(
            "the certificate and the key cannot be used together",
            remedy="Both must be PEM files, the key without a password and of this certificate",
            field="tls",
            file=config.file.name if config.file else "",
        ) from None


def _check_state(config: ServerConfig) -> list[str]:
    if not config.state.exists():
        return ["There is no server.db yet: it is made when the server starts."]
    with ServerStore(config.state, new=False) as store:
        problems = AuditLog(store).verify()
        if problems:
            raise StoreError(
                f"the audit log was tampered with: {problems[0]}",
                remedy="Find out by whom; to go on with a backup, move server.db away and give `understudy server "
                "restore`",
            )
        found = [f"server.db is sound; its audit log has {AuditLog(store).head[0]} entries."]
        if store.clock_is_behind > 60:
            found.append(
                f"The clock is {store.clock_is_behind / 3600:.1f} hours behind the latest time that the server "
                f"has seen, by which tokens expire: see `understudy server clock`."
            )
    return found
