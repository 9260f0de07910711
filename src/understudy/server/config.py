"""Reading `server.yml`. Every complaint names the line, the field and the remedy; unknown keys are errors.

No secret stands in this file: tokens are in `server.db` as hashes, passwords of databases in the environment.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from understudy.declaration.file import read as read_declaration
from understudy.declaration.node import Node, root_of, text_of
from understudy.errors import DeclarationError
from understudy.ledger.place import ledger_place
from understudy.privacy.noise_name import NOISES
from understudy.server.place import CONFIG, state_beside

_EXAMPLE = "Write at least `tables: [town/understudy.yml]`; docs/server.md shows a whole file"
_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|min)")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Address:
    """Where a door listens: an IP address of this machine and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """The addresses of the doors; a door without one is shut."""

    http: Address = Address("127.0.0.1", 8700)
    admin: Address = Address("127.0.0.1", 8701)
    postgres: Address | None = None

    @property
    def all(self) -> dict[str, Address]:
        """The open doors by name."""
        doors = {"http": self.http, "admin": self.admin, "postgres": self.postgres}
        return {name: address for name, address in doors.items() if address is not None}


@dataclass(frozen=True, slots=True)
class Tls:
    """The certificate and its key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSession:
    """The promise of the session that all analysts of a table share."""

    alpha: Fraction = Fraction(1, 50)
    beta: Fraction = Fraction(1, 20)
    queries: int = 100_000
    noise: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveAbove:
    """Parts of the whole budget above which one question needs a custodian's approval."""

    people: Fraction = Fraction(1, 100)
    agents: Fraction = Fraction(1, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What each analyst may do: requests in a second, questions in work at once, and questions that wait."""

    requests: float = 20.0
    at_once: int = 4
    waiting: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What a server serves, where and how. Paths are absolute.

    `tables` are declaration files by the names of their tables, `file` is the server.yml, None where there is
    none, and `folder` the folder that `server.db` is kept in. `behind` are the proxies that end TLS: what they
    say of a client is believed, and a request from anywhere else is not theirs.
    """

    folder: Path
    tables: dict[str, Path]
    file: Path | None = None
    listen: Listen = Listen()
    tls: Tls | None = None
    behind: tuple[Network, ...] = ()
    session: SharedSession = SharedSession()
    own_sessions: bool = False
    approve_above: ApproveAbove = ApproveAbove()
    rates: Rates = Rates()
    response_grid_ms: int = 25
    releases: Path | None = None
    boards: tuple[Path, ...] = ()

    @property
    def state(self) -> Path:
        """The `server.db` of this server."""
        return state_beside(self.folder)

    def is_proxy(self, host: str) -> bool:
        """Whether a peer's address is that of a declared proxy."""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self.behind)

    @property
    def sqlite_ledgers(self) -> list[Path]:
        """The files of those ledgers that are kept in SQLite: a file has one server."""
        found: list[Path] = []
        for path in self.tables.values():
            url = ledger_place(read_declaration(path).ledger, base=path.parent, environ=os.environ)
            if url.get_backend_name() == "sqlite":
                found.append(Path(url.database or ""))
        return found

    @classmethod
    def read(cls, path: Path | str) -> ServerConfig:
        """The configuration in a file, or in the `server.yml` of a folder.

        Raises a DeclarationError that names the line and what to write instead.
        """
        path = Path(path)
        path = path / CONFIG if path.is_dir() else path
        text = text_of(path, absent=_EXAMPLE, large="It is a page of text: see docs/server.md")
        return _config(root_of(text, file=path.name, empty=_EXAMPLE), path.resolve())

    @classmethod
    def single(cls, folder: Path | str) -> ServerConfig:
        """The server of the one project in a folder, on loopback, for whoever tries it alone.

        Releases are the folders beside its declaration, and a question needs approval above the part of the budget
        at which `understudy ask` asks first, a twentieth. All else is as in a server.yml that says nothing of it.
        """
        folder = Path(folder)
        file = folder if folder.is_file() else folder / "understudy.yml"
        if not file.is_file():
            raise DeclarationError(
                f"there is neither a {CONFIG} nor an understudy.yml",
                remedy="Write a server.yml, draft a declaration with `understudy init DATA`, name a project's "
                "folder with --project, or try `understudy demo` and then `understudy serve --project demo`",
                file=str(folder),
            )
        file = file.resolve()
        return cls(
            folder=file.parent,
            tables={read_declaration(file).name: file},
            approve_above=ApproveAbove(people=Fraction(1, 20)),
            releases=file.parent,
        )


_KEYS = (
    "tables", "listen", "tls", "behind", "session", "own_sessions", "approve_above", "rates", "response_grid_ms",
    "releases", "boards",
)  # fmt: skip


def _config(root: Node, file: Path) -> ServerConfig:
    top = root.mapping(_KEYS)
    if "tables" not in top:
        root.fail("'tables' is missing", _EXAMPLE)
    base = file.parent
    if "tls" in top and "behind" in top:
        top["behind"].fail(
            "'tls' and 'behind' are both given",
            "Keep 'tls' where the server ends TLS, 'behind' where a proxy does",
        )
    listen = _listen(top["listen"]) if "listen" in top else Listen()
    tls = _tls(top["tls"], base) if "tls" in top else None
    behind = _behind(top["behind"]) if "behind" in top else ()
    if "listen" in top and tls is None and not behind:
        _check_private(top["listen"], listen)
    return ServerConfig(
        file=file,
        folder=base,
        tables=_tables(top["tables"], base),
        listen=listen,
        tls=tls,
        behind=behind,
        session=_session(top["session"]) if "session" in top else SharedSession(),
        own_sessions=top["own_sessions"].flag() if "own_sessions" in top else False,
        approve_above=_approve_above(top["approve_above"]) if "approve_above" in top else ApproveAbove(),
        rates=_rates(top["rates"]) if "rates" in top else Rates(),
        response_grid_ms=_whole(top["response_grid_ms"], 1, 10_000) if "response_grid_ms" in top else 25,
        releases=_folder(top["releases"], base) if "releases" in top else None,
        boards=tuple(
            _file(item, base, "Make it with `understudy holdout create`") for item in top["boards"].items()
        )
        if "boards" in top
        else (),
    )


def _tables(node: Node, base: Path) -> dict[str, Path]:
    tables: dict[str, Path] = {}
    for item in node.items():
        given = base / item.text()
        path = given / "understudy.yml" if given.is_dir() else given
        if not path.is_file():
            item.fail("there is no such declaration", "Write its path, as it is seen from this file")
        name = read_declaration(path).name
        if name in tables:
            item.fail(
                f"two tables have the name {name!r}",
                "Change `name:` in one declaration before anything is charged",
            )
        tables[name] = path.resolve()
    if not tables:
        node.fail("no table is served", _EXAMPLE)
    return tables


def _listen(node: Node) -> Listen:
    fields = node.mapping(("http", "admin", "postgres"))
    doors = {name: _address(child) for name, child in fields.items()}
    listen = Listen(**doors)
    seen: dict[Address, str] = {}
    for name, address in listen.all.items():
        if address in seen:
            node.fail(
                f"{seen[address]} and {name} have the same address {address}",
                "Give each door a port of its own",
            )
        seen[address] = name
    return listen


def _address(node: Node) -> Address:
    text = node.text()
    host, separator, port = text.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    try:
        whole = ipaddress.ip_address(host)
        number = int(port) if port.isascii() and port.isdecimal() else -1
    except ValueError:
        separator, number, whole = "", -1, None
    if not separator or whole is None or not 0 <= number <= 65535 or (whole.version == 6 and "[" not in text):
        node.fail(
            f"{text!r} is no address",
            "Write an IP address and a port, such as 127.0.0.1:8700 or [::1]:8700; 0.0.0.0:8700 is every network",
        )
    return Address(str(whole), number)


def _check_private(node: Node, listen: Listen) -> None:
    """Refuse an address that others can reach where nothing encrypts tokens and answers on their way."""
    for name, address in listen.all.items():
        if not address.is_loopback:
            place = node.mapping(None).get(name, node)
            place.fail(
                f"{address} can be reached from outside, and nothing encrypts what goes there",
                "Add `tls: {certificate: cert.pem, key: key.pem}`, or `behind: [10.0.0.5]` with the address of "
                "the proxy that ends TLS; or listen on 127.0.0.1",
            )


def _tls(node: Node, base: Path) -> Tls:
    fields = node.mapping(("certificate", "key"))
    for key in ("certificate", "key"):
        if key not in fields:
            node.fail(f"{key!r} is missing", "Write `tls: {certificate: cert.pem, key: key.pem}`")
    remedy = "Write the path of a PEM file, as it is seen from this file"
    return Tls(_file(fields["certificate"], base, remedy), _file(fields["key"], base, remedy))


def _behind(node: Node) -> tuple[Network, ...]:
    networks: list[Network] = []
    for item in node.items():
        try:
            networks.append(ipaddress.ip_network(item.text()))
        except ValueError:
            item.fail(
                f"{item.text()!r} is no address",
                "Write the proxy's IP address, such as 10.0.0.5, or 10.0.0.0/24",
            )
        if networks[-1].prefixlen == 0:
            item.fail("every address would be believed to be the proxy", "Write the proxy's own address")
    if not networks:
        node.fail("no proxy is named", "Write the address of the proxy that ends TLS: `behind: [10.0.0.5]`")
    return tuple(networks)


def _session(node: Node) -> SharedSession:
    fields = node.mapping(("alpha", "beta", "queries", "noise"))
    default = SharedSession()
    return SharedSession(
        alpha=_part(fields["alpha"]) if "alpha" in fields else default.alpha,
        beta=_part(fields["beta"]) if "beta" in fields else default.beta,
        queries=_whole(fields["queries"], 1, 10**9) if "queries" in fields else default.queries,
        noise=fields["noise"].choice(NOISES) if "noise" in fields else default.noise,
    )


def _approve_above(node: Node) -> ApproveAbove:
    return ApproveAbove(
        **{
            name: _part(child, least=True, most=True)
            for name, child in node.mapping(("people", "agents")).items()
        }
    )


def _rates(node: Node) -> Rates:
    fields = node.mapping(("requests", "at_once", "waiting"))
    default = Rates()
    return Rates(
        requests=_rate(fields["requests"]) if "requests" in fields else default.requests,
        at_once=_whole(fields["at_once"], 1, 1000) if "at_once" in fields else default.at_once,
        waiting=_whole(fields["waiting"], 1, 100_000) if "waiting" in fields else default.waiting,
    )


def _rate(node: Node) -> float:
    found = _RATE.fullmatch(node.text())
    rate = float(found[1]) / (60 if found[2] == "min" else 1) if found else 0.0
    if not 0 < rate <= 1e6:
        node.fail(f"{node.text()!r} is no rate", "Write `20/s` or `30/min`")
    return rate


def _part(node: Node, *, least: bool = False, most: bool = False) -> Fraction:
    """A number between 0 and 1; the ends are allowed where it says so."""
    value = node.number()
    if not (0 <= value <= 1) or (value == 0 and not least) or (value == 1 and not most):
        node.fail(f"{node.text()!r} is not a part", "Write a number between 0 and 1, such as 0.02")
    return value


def _whole(node: Node, least: int, most: int) -> int:
    value = node.integer()
    if not least <= value <= most:
        node.fail(f"{node.text()} is out of range", f"Write a whole number from {least:,} to {most:,}")
    return value


def _file(node: Node, base: Path, remedy: str) -> Path:
    path = base / node.text()
    if not path.is_file():
        node.fail("there is no such file", remedy)
    return path.resolve()


def _folder(node: Node, base: Path) -> Path:
    path = base / node.text()
    if not path.is_dir():
        node.fail("there is no such folder", f"Make it: `mkdir -p {node.text()}`")
    return path.resolve()
