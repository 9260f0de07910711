"""Requests to a server over the standard library's HTTP: kept-alive connections, TLS, and trying again.

Every request of a client may be sent twice: those that read change nothing, and a question is asked under a
request id, for which the server answers once and the ledger pays once. So whatever breaks between the two (a
connection, a proxy, the server itself) is tried again, with growing pauses and within bounds.
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from understudy import __version__
from understudy.client.address import ServerAddress
from understudy.client.refusals import refusal
from understudy.errors import AccessError, ClosedError, ParameterError, ServerError

CONNECT_SECONDS = 10.0
"""In which a connection must stand."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between the first two attempts, and at most between later ones, unless the server says how long."""

PASSING = (429, 502, 503, 504)
"""Statuses after which the same request may be granted."""

KEPT = 8
"""Idle connections that are kept open for threads that ask at once."""


@dataclass(frozen=True, slots=True)
class Received:
    """What a server sent back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_json(self) -> bool:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return kind == "application/json" or kind.endswith("+json")

    def document(self) -> Any:
        """The JSON of the body; a `ServerError` where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise not_understood() from None


class Transport:
    """Sends requests with a token to one server. Safe for threads; a child process opens its own connections.

    timeout   seconds for one reply
    patience  seconds for which a request that failed in passing is sent again
    ca        a file with the certificates of an authority of one's own; otherwise the system's are trusted
    """

    def __init__(
        self, address: ServerAddress, token: str, *, timeout: float, patience: float, ca: str | Path | None
    ) -> None:
        if not timeout > 0 or not patience >= 0:
            raise ParameterError(
                "`timeout` is a positive number of seconds, and `patience` one of at least 0"
            )
        self.address = address
        self.patience = float(patience)
        self._timeout = float(timeout)
        self._headers = {"authorization": f"Bearer {token}", "user-agent": f"understudy/{__version__}"}
        self._tls = _trusting(ca) if address.scheme == "https" else None
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        self._process = os.getpid()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"Transport({self.address.text!r})"

    def close(self) -> None:
        """Close the connections; whatever is sent afterwards is a `ClosedError`."""
        self._is_closed = True
        self._drop_idle()

    def get(
        self, *path: str, parameters: Mapping[str, str] | None = None, patience: float | None = None
    ) -> Any:
        """The JSON document at a path, whose parts are escaped here; raises what the server refuses with.

        Parameters that are empty are left out.
        """
        return self.call("GET", _path(path, parameters or {}), patience=patience)[1]

    def post(self, *path: str, body: Mapping[str, Any] | None, request: str = "") -> tuple[int, Any]:
        """Status and document of a reply to a body. `request` is the id under which a question is asked."""
        return self.call("POST", _path(path, {}), body, request=request)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        request: str = "",
        patience: float | None = None,
    ) -> tuple[int, Any]:
        """Status and document of a reply, after as many attempts as it takes and `patience` allows.

        Raises the library's own error where the server refuses, and a `ServerError` where it cannot be reached
        or does not reply what a server of Understudy would.
        """
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        received = self._sent(method, path, data, request, self.patience if patience is None else patience)
        if received.status >= 300 or not received.is_json:
            raise refused(received, self.address, request)
        return received.status, received.document()

    def exchange(self, path: str, data: bytes, headers: Mapping[str, str]) -> Received:
        """What a server sent back to some JSON, whatever its status, after as many attempts as `patience` allows.

        Raises a `ServerError` where it cannot be reached.
        """
        return self._sent("POST", path, data, "", self.patience, headers)

    def save(self, file: IO[bytes], *path: str) -> None:
        """Write the file at a path to an open one, piece by piece; begun again from its start where it breaks."""
        for pause in self._pauses(self.patience):
            file.seek(0)
            file.truncate()
            try:
                refusing = self._saved(file, _path(path, {}))
            except (HTTPException, OSError) as error:
                self._failed(error, pause, "")
                continue
            if refusing is None:
                return
            if refusing.status not in PASSING:
                raise refused(refusing, self.address, "")
            try:
                pause(_asked_pause(refusing))
            except _Exhausted:
                raise refused(refusing, self.address, "") from None

    def _saved(self, file: IO[bytes], path: str) -> Received | None:
        """Write what is at a path to a file, in one attempt; the reply where it is not sent."""
        with self._response("GET", path, None) as response:
            if response.status != 200:
                return _received(response)
            while piece := response.read(1 << 20):
                file.write(piece)
            if response.length:
                raise HTTPException("cut short")
        return None

    # ---- trying

    def _sent(
        self,
        method: str,
        path: str,
        data: bytes | None,
        request: str,
        patience: float,
        headers: Mapping[str, str] | None = None,
    ) -> Received:
        """The reply to a request, which is sent again as long as that may help and `patience` lasts."""
        for pause in self._pauses(patience):
            try:
                with self._response(method, path, data, headers) as response:
                    received = _received(response)
            except (HTTPException, OSError) as error:
                self._failed(error, pause, request)
                continue
            wanted = _asked_pause(received)
            if received.status not in PASSING or (wanted is None and received.is_json):
                return received  # the server says that it does not pass
            try:
                pause(wanted)
            except _Exhausted:
                return received
        raise AssertionError("unreachable")

    def _pauses(self, patience: float) -> Iterator[Any]:
        """For each attempt, a function that waits before the next one: so many seconds, or a growing number."""
        began: float | None = None
        usual = FIRST_PAUSE

        def pause(wanted: float | None) -> None:
            nonlocal began, usual
            now = time.monotonic()
            began = now if began is None else began
            seconds = usual * (0.5 + secrets.randbelow(1000) / 2000) if wanted is None else wanted
            usual = min(2 * usual, LONGEST_PAUSE)
            if now + seconds > began + patience:
                raise _Exhausted
            time.sleep(seconds)

        while True:
            yield pause

    def _failed(self, error: HTTPException | OSError, pause: Any, request: str) -> None:
        """Wait after a failure, or raise it as a `ServerError` where trying again does not help any more."""
        told = _unreachable(error, self.address, request)
        if isinstance(error, ssl.SSLCertVerificationError):
            raise told from None
        try:
            pause(None)
        except _Exhausted:
            raise told from None

    # ---- one attempt

    @contextmanager
    def _response(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str] | None = None
    ) -> Iterator[HTTPResponse]:
        """The response to one request. Its connection is kept where the response was read to its end."""
        if self._is_closed:
            raise ClosedError("this connection was closed", remedy="Connect again with `us.connect`")
        connection, response = self._begun(method, path, data, headers or {})
        is_whole = False
        try:
            yield response
            is_whole = response.isclosed() and not response.will_close
        finally:
            if is_whole:
                self._keep(connection)
            else:
                connection.close()

    def _begun(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """A connection and the head of the response. A kept connection that was closed meanwhile is replaced."""
        kept = self._kept()
        if kept is not None:
            try:
                return kept, self._asked(kept, method, path, data, headers)
            except (HTTPException, ConnectionError, ssl.SSLError):
                kept.close()
                self._drop_idle()
            except BaseException:
                kept.close()
                raise
        fresh = self._opened()
        try:
            return fresh, self._asked(fresh, method, path, data, headers)
        except BaseException:
            fresh.close()
            raise

    def _asked(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        data: bytes | None,
        more: Mapping[str, str],
    ) -> HTTPResponse:
        headers = self._headers if data is None else {**self._headers, "content-type": "application/json"}
        if data is None and method == "POST":
            headers = {**headers, "content-length": "0"}
        connection.request(method, self.address.prefix + path, data, {**more, **headers})
        return connection.getresponse()

    def _opened(self) -> HTTPConnection:
        address = self.address
        seconds = min(CONNECT_SECONDS, self._timeout)
        if self._tls is None:
            connection = HTTPConnection(address.host, address.port, timeout=seconds)
        else:
            connection = HTTPSConnection(address.host, address.port, timeout=seconds, context=self._tls)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        connection.sock.settimeout(self._timeout)
        return connection

    def _kept(self) -> HTTPConnection | None:
        with self._lock:
            if self._process != os.getpid():  # a fork: its parent's connections are not its own
                self._idle, self._process = [], os.getpid()
            return self._idle.pop() if self._idle else None

    def _keep(self, connection: HTTPConnection) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < KEPT and self._process == os.getpid():
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()


class _Exhausted(Exception):
    """The next attempt would come later than patience allows."""


def not_understood(request: str = "") -> ServerError:
    """The error of a reply that no server of this version sends."""
    return ServerError(
        "the server's reply is not understood",
        remedy="Client and server may be of different versions: `pip install --upgrade understudy`, and ask again "
        "under the same request id",
        request=request,
    )


def refused(received: Received, address: ServerAddress, request: str) -> Exception:
    """The error of a reply that refuses, or that is none of a server of Understudy."""
    if received.is_json and received.status >= 400:
        document = received.document()
        if isinstance(document, dict) and "code" in document:
            return refusal(document, request=request)
    if received.status in (401, 403):
        return AccessError(
            f"{address.text} refused the request before a server of Understudy saw it",
            remedy="Ask whoever runs the proxy in between",
        )
    if 300 <= received.status < 400:
        return ServerError(
            f"{address.text} sends elsewhere, and a token is not sent after it",
            remedy="Connect to the address of the server itself",
            request=request,
        )
    if received.status in PASSING:
        return ServerError(
            f"{address.text} cannot answer at the moment (status {received.status})",
            remedy="Try again later, under the same request id",
            request=request,
        )
    return ServerError(
        f"{address.text} does not reply as a server of Understudy does (status {received.status})",
        remedy="Check the address; the pages of the custodian are on another port",
        request=request,
    )


def _unreachable(error: HTTPException | OSError, address: ServerAddress, request: str) -> ServerError:
    """What is told of a failed attempt: never a header, and of the error its kind alone."""
    again = ". Asked again under the same request id, a question is paid once" if request else ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ServerError(
            f"the certificate of {address.text} is not trusted ({error.verify_message})",
            remedy="Check the address; where an authority of your own signs certificates, give its file as `ca=`",
            request=request,
        )
    if isinstance(error, TimeoutError):
        return ServerError(
            f"{address.text} did not answer in time",
            remedy=f"Try again, or wait longer with `timeout=`{again}",
            request=request,
        )
    kind = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return ServerError(
        f"{address.text} cannot be reached ({kind})",
        remedy=f"Check the address, and whether the server runs (`understudy serve`){again}",
        request=request,
    )


def _received(response: HTTPResponse) -> Received:
    body = response.read()
    if response.length:
        raise HTTPException("cut short")
    return Received(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


def _asked_pause(received: Received) -> float | None:
    """The seconds that a reply asks to wait; None where it does not."""
    told = received.headers.get("retry-after", "").strip()
    return float(told) if told.isdigit() and len(told) < 7 else None


def _path(parts: tuple[str, ...], parameters: Mapping[str, str]) -> str:
    path = "/v1/" + "/".join(quote(part, safe="") for part in parts)
    given = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value)
    return f"{path}?{given}" if given else path


def _trusting(ca: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError):
        raise ParameterError(
            "the file given as `ca` holds no certificates", remedy="Give a file of certificates in PEM"
        ) from None
