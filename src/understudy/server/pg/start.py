"""How a connection begins: encryption, the first message, who it is, and what it is told then.

Nobody is told whether a name exists: an unknown name has a salt, and its proof is tried like any other. Whoever
tries proofs that fit nothing is slowed down by address.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from understudy.server.config import ServerConfig
from understudy.server.pg import wire
from understudy.server.pg.exchange import MECHANISM, ScramError, ScramExchange
from understudy.server.pg.frames import Fields, ProtocolError
from understudy.server.pg.settings import REPORTED, Settings
from understudy.server.pg.states import Refusal
from understudy.server.pg.transport import ClientTransport, Gone
from understudy.server.tokens import Caller, Tokens

START_SECONDS = 10.0
"""Within which a client must have said who it is."""

DOOR = "pg"

_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
_OPTION = re.compile(r"(?:-c\s*|--)([\w.-]+)=((?:\\.|[^\s\\])*)")
_MOST_PASSWORD = 4096


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A connection that only wants another one's statement to end."""

    process: int
    secret: int


@dataclass(frozen=True, slots=True)
class StartMessage:
    """The first message: the settings that the client begins with, and the minor version that it speaks."""

    given: dict[str, str]
    minor: int

    @property
    def user(self) -> str:
        return self.given.get("user", "")


async def first_message(
    transport: ClientTransport, config: ServerConfig, context: ssl.SSLContext | None
) -> StartMessage | CancelRequest:
    """The first message that is one, after TLS was agreed on. Raises `Gone`, `ProtocolError` and a `Refusal`."""
    for _ in range(4):  # a client asks for GSS, for TLS, and then begins
        body = await transport.start()
        (code,) = struct.unpack_from("!i", body)
        if code == _SSL and context is not None and not transport.is_encrypted:
            if transport.has_more:  # bytes that came before encryption must not be believed after it
                raise ProtocolError("unencrypted bytes follow the request for TLS")
            transport.write(b"S")
            transport.flush()
            await transport.encrypt(context, START_SECONDS)
        elif code in (_SSL, _GSS):
            transport.write(b"N")
            transport.flush()
        elif code == _CANCEL:
            if len(body) != 12:
                raise ProtocolError("a request to cancel has 16 bytes")
            return CancelRequest(*struct.unpack("!iI", body[4:]))
        else:
            _check_encrypted(transport, config, context)
            return _started(body, code)
    raise ProtocolError("the start-up message is missing")


def _check_encrypted(
    transport: ClientTransport, config: ServerConfig, context: ssl.SSLContext | None
) -> None:
    """No answer crosses a network unencrypted: the server speaks TLS, or a proxy does before it."""
    if transport.is_encrypted:
        return
    if context is not None:
        raise Refusal("28000", "this server wants TLS", hint="Connect with sslmode=require.", fatal=True)
    if config.behind and not config.is_proxy(transport.peer) and not _is_loopback(transport.peer):
        raise Refusal("28000", "connections come through the proxy", hint="Connect to the proxy.", fatal=True)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _started(body: bytes, code: int) -> StartMessage:
    if code >> 16 != wire.PROTOCOL >> 16:
        major, minor = code >> 16 & 0xFFFF, code & 0xFFFF
        raise Refusal(
            "0A000", f"unsupported frontend protocol {major}.{minor}: server supports 3.0", fatal=True
        )
    fields, given = Fields(body), dict[str, str]()
    fields.int32()
    while name := fields.text():
        given[name] = fields.text()
    fields.end()
    return StartMessage(given, code & 0xFFFF)


async def authenticated(transport: ClientTransport, start: StartMessage, tokens: Tokens) -> Caller | None:
    """Who connects, by SCRAM-SHA-256; None where no token of that name fits. Raises `Gone`, `ProtocolError`."""
    transport.write(wire.authentication(10, wire.text(MECHANISM) + b"\0"))
    transport.flush()
    salt, known = tokens.scram(start.user)
    usable = [(token, verifier) for token, verifier in known if DOOR in token.doors]
    exchange = ScramExchange(salt, [verifier for _, verifier in usable])
    try:
        fields = Fields(await _password(transport))
        if fields.text() != MECHANISM:
            raise ProtocolError(f"the mechanism must be {MECHANISM}")
        first = fields.bytes_or_none()
        fields.end()
        transport.write(wire.authentication(11, exchange.first(first or b"")))
        transport.flush()
        fitting = exchange.final(await _password(transport))
    except ScramError as error:
        raise ProtocolError(str(error)) from None
    if fitting is None:
        return None
    said, place = fitting
    transport.write(wire.authentication(12, said))
    return usable[place][0].caller


async def _password(transport: ClientTransport) -> bytes:
    frame = await transport.small_frame(_MOST_PASSWORD)
    if frame.kind != ord("p") or frame.body is None:
        if frame.kind == ord("X"):
            raise Gone
        raise ProtocolError("a message of SCRAM is expected")
    return frame.body


def no_token(user: str) -> Refusal:
    """The refusal of a proof that fits no token, whether or not the name exists."""
    return Refusal(
        "28P01",
        f'password authentication failed for user "{user[:64]}"',
        hint="The user is the analyst's name and the password a token with the door pg: `understudy token new`.",
        fatal=True,
    )


def settings_of(start: StartMessage, caller: Caller, terms: Mapping[str, str]) -> Settings:
    """The settings that a connection begins with; a fatal `Refusal` where one cannot be."""
    settings = Settings(caller.analyst, terms)
    given = {name.lower(): value for name, value in start.given.items()}
    if given.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise Refusal("0A000", "replication is not served", fatal=True)
    options = {
        found[1].lower().replace("-", "_"): re.sub(r"\\(.)", r"\1", found[2])
        for found in _OPTION.finditer(given.pop("options", ""))
    }
    for name in ("user", "database"):
        given.pop(name, None)
    for name, value in (*options.items(), *given.items()):
        if name.startswith("_pq_."):
            continue
        try:
            settings.use_as_default(name, value)
        except Refusal as refusal:
            refusal.fatal = True
            raise
    return settings


def greeting(start: StartMessage, settings: Settings, process: int, secret: int) -> bytes:
    """What a client is told once it is known."""
    parts = [wire.AUTHENTICATED]
    parts += [wire.parameter_status(name, settings[key]) for key, name in REPORTED.items()]
    parts += (wire.key_data(process, secret), wire.ready(b"I"))
    return b"".join(parts)


def negotiated(start: StartMessage) -> bytes:
    """That a later minor version, or an option of the protocol, is not known; empty where all is."""
    unknown = [name for name in start.given if name.startswith("_pq_.")]
    return wire.negotiate(unknown) if start.minor or unknown else b""
