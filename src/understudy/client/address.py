"""Where a server is: its URL, read strictly, since a token is sent there."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from understudy.errors import ParameterError

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server: `scheme` is http or https, `prefix` the path before that of every endpoint."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @classmethod
    def read(cls, url: str) -> ServerAddress:
        """The address that a URL says, such as https://data.example.org or http://127.0.0.1:8700.

        Raises a `ParameterError` where it is none; where it has a name, a password or parameters, which belong
        into no address; and where it is unencrypted and not this machine's own: a token would be read on its
        way.
        """
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except (ValueError, AttributeError):
            raise _no_address() from None
        if parts.scheme not in PORTS or not parts.hostname:
            raise _no_address()
        if parts.username is not None or parts.query or parts.fragment:
            raise ParameterError(
                "the address of a server has no user, password, parameters or fragment",
                remedy="Give the address alone, and the token in the variable UNDERSTUDY_TOKEN, or in Python as "
                "`token=`",
            )
        if parts.scheme == "http" and not _is_loopback(parts):
            raise ParameterError(
                f"http://{parts.hostname} is not encrypted, and a token would be sent to it",
                remedy="Use the https:// address; http:// is for a server on this machine, or for `ssh -L`",
            )
        default = PORTS[parts.scheme]
        return cls(parts.scheme, parts.hostname, default if port is None else port, parts.path.rstrip("/"))

    @property
    def text(self) -> str:
        """The address as it is written: without the port that its scheme has anyway."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.prefix}"


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _no_address() -> ParameterError:
    return ParameterError(
        "the address of a server begins with https:// (or http:// on this machine) and names a host",
        remedy="Write it as `understudy serve` prints it, for instance http://127.0.0.1:8700",
    )
