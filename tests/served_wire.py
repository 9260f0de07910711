"""A small town behind the Postgres door, and ways to reach it: by a DSN, a URL, or bytes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from served import WITH_POSTGRES, config, serving, tokens
from understudy.server.run import Service

DISTRICTS = ("Emberquay", "Inkwharf", "Saltmarsh", "The Vale")

YEARS = ", ".join(f"{year}-01-01" for year in range(2000, 2020))

DECLARATION = f"""\
understudy: 1
name: town
source: town.csv
budget: {{epsilon: 1000, delta: 1e-9}}
attributes:
  age: {{type: integer, edges: [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]}}
  sex: {{type: category, values: [F, M]}}
  district: {{type: category, values: [Emberquay, Inkwharf, Saltmarsh, The Vale]}}
  smoker: {{type: boolean}}
  moved_in: {{type: date, edges: [{YEARS}, 2019-12-31]}}
  income: {{type: real, edges: [0, 10000, 20000, 40000, 80000]}}
"""

BY_SEX = "SELECT sex, count(*) AS n, avg(age) AS years FROM town GROUP BY sex ORDER BY n DESC"


def write_town(folder: Path, rows: int = 2000) -> Path:
    """A town of people whose every attribute is a function of their number, and a release of it."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        f"{i * 7 % 100},{'FFM'[i % 3]},{DISTRICTS[i * 5 % 4]},{'true' if i % 4 == 0 else 'false'},"
        f"{2000 + i % 20}-0{1 + i % 9}-15,{i * 37 % 80000}.5"
        for i in range(rows)
    ]
    (folder / "town.csv").write_text("age,sex,district,smoker,moved_in,income\n" + "\n".join(lines) + "\n")
    (folder / "understudy.yml").write_text(DECLARATION)
    release = folder / "releases" / "spring"
    release.mkdir(parents=True)
    (release / "certificate.json").write_text('{"method": "by hand"}')
    invented = pa.table({"age": [10, 20, 30], "sex": ["F", "M", "F"], "smoker": [True, False, None]})
    parquet.write_table(invented, release / "synthetic.parquet")
    return folder


@dataclass(frozen=True)
class WireTown:
    """A server with a Postgres door, and tokens by the names of their analysts."""

    service: Service
    folder: Path
    tokens: dict[str, str]

    @property
    def port(self) -> int:
        return self.service.addresses["postgres"].port

    def dsn(self, name: str = "ada", **more: str) -> str:
        extra = "".join(f" {key}='{value}'" for key, value in more.items())
        return f"host=127.0.0.1 port={self.port} user={name} password={self.tokens[name]} dbname=understudy{extra}"

    def url(self, name: str = "ada", driver: str = "postgresql") -> str:
        return f"{driver}://{name}:{self.tokens[name]}@127.0.0.1:{self.port}/understudy"


@contextmanager
def served_wire(folder: Path, **given: Any) -> Iterator[WireTown]:
    """The town, served on free ports."""
    write_town(folder)
    plain: dict[str, Any] = {
        "tables": {"town": folder / "understudy.yml"},
        "listen": WITH_POSTGRES,
        "releases": folder / "releases",
    }
    configured = config(folder, **plain | given)
    made = {name: tokens(configured, name)[0] for name in ("ada", "ben")}
    made["bot"] = tokens(configured, "bot", agent=True)[0]
    made["eve"] = tokens(configured, "eve", read_only=True)[0]
    made["olga"] = tokens(configured, "olga", role="auditor")[0]
    made["web"] = tokens(configured, "web", doors=["http"])[0]
    with serving(configured) as service:
        yield WireTown(service, folder, made)


class RawClient:
    """The protocol by hand: bytes out, messages in."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)

    def close(self) -> None:
        self.socket.close()

    def send(self, kind: bytes, body: bytes = b"") -> None:
        self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def start(self, user: str, minor: int = 0, **given: str) -> None:
        pairs = {"user": user, "database": "understudy", **given}
        body = b"".join(k.encode() + b"\0" + v.encode() + b"\0" for k, v in pairs.items()) + b"\0"
        self.socket.sendall(struct.pack("!ii", len(body) + 8, 3 << 16 | minor) + body)

    def receive(self) -> tuple[bytes, bytes]:
        """A message; nothing where the server closed the connection."""
        head = self._exactly(5)
        if not head:
            return b"", b""
        return head[:1], self._exactly(struct.unpack("!i", head[1:])[0] - 4)

    def until(self, *kinds: bytes) -> list[tuple[bytes, bytes]]:
        """Messages up to one of these kinds, or the end."""
        found: list[tuple[bytes, bytes]] = []
        while True:
            found.append(self.receive())
            if found[-1][0] in (*kinds, b""):
                return found

    def login(self, user: str, password: str, minor: int = 0, **given: str) -> list[tuple[bytes, bytes]]:
        """Start and prove who it is; returns what came from then on, up to ReadyForQuery or an error."""
        self.start(user, minor, **given)
        before = self.until(b"R", b"E")
        if before[-1][0] == b"E":
            return before
        nonce = base64.b64encode(secrets.token_bytes(18)).decode()
        bare = f"n=,r={nonce}"
        first = f"n,,{bare}".encode()
        self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
        kind, body = self.receive()
        assert kind == b"R", body
        server = body[4:].decode()
        parts = dict(part.split("=", 1) for part in server.split(","))
        salted = hashlib.pbkdf2_hmac(
            "sha256", password.encode(), base64.b64decode(parts["s"]), int(parts["i"])
        )
        final = f"c=biws,r={parts['r']}"
        signed = f"{bare},{server},{final}".encode()
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        self.send(b"p", f"{final},p={proof}".encode())
        return before + self.until(b"Z", b"E")

    def query(self, sql: str) -> list[tuple[bytes, bytes]]:
        self.send(b"Q", sql.encode() + b"\0")
        return self.until(b"Z")

    def _exactly(self, length: int) -> bytes:
        found = b""
        while len(found) < length:
            part = self.socket.recv(length - len(found))
            if not part:
                return b""
            found += part
        return found


def error_fields(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice by their letters."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}
