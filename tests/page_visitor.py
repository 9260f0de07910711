"""A browser without a screen: logs in, keeps cookies, sends forms as a page of the server would."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from http.client import HTTPConnection
from urllib.parse import urlencode

from served_town import ServedTown

FORM = "application/x-www-form-urlencoded"


class Shown:
    """A reply: its status, headers and text."""

    def __init__(self, status: int, headers: dict[str, str], text: str) -> None:
        self.status = status
        self.headers = headers
        self.text = text

    @property
    def words(self) -> str:
        """What people read, without tags."""
        reader = _Words()
        reader.feed(self.text)
        return " ".join(" ".join(reader.said).split())

    def field(self, name: str) -> str:
        """The value of a hidden field."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found is not None, name
        return found[1]

    @property
    def foreign(self) -> list[str]:
        """What a page of the server must not hold: scripts and styles of its own, addresses elsewhere."""
        reader = _Words()
        if self.headers.get("content-type", "").startswith("text/html"):
            reader.feed(self.text)
        return reader.foreign


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style" or (
            tag == "script" and not re.fullmatch(r"/static/page\.js\?\w+", given.get("src") or "")
        ):
            self.foreign.append(f"<{tag}>")
        for name, value in attrs:
            is_elsewhere = name in ("src", "href", "action", "formaction", "srcset") and not re.match(
                r"/(?!/)|#|\?", value or ""
            )
            if name.startswith("on") or name == "style" or is_elsewhere:
                self.foreign.append(f"<{tag} {name}={value}>")

    def handle_data(self, data: str) -> None:
        self.said.append(data)


class PageVisitor:
    """Somebody at one door of a served town; `name` is whose token they log in with, empty for nobody's."""

    def __init__(self, town: ServedTown, name: str = "", *, door: str = "http") -> None:
        self.town = town
        self.door = door
        self.cookies: dict[str, str] = {}
        if name:
            reply = self.post("/login", {"token": town.tokens[name]}, token=False)
            assert reply.status == 303, reply.words

    def get(self, path: str, **headers: str) -> Shown:
        return self._sent("GET", path, None, headers)

    def post(
        self,
        path: str,
        fields: dict[str, str] | list[tuple[str, str]],
        *,
        token: bool = True,
        site: str | None = "same-origin",
        **headers: str,
    ) -> Shown:
        """Send a form: with the token of its page, and as a page of `site` sends it."""
        listed = list(fields.items()) if isinstance(fields, dict) else fields
        if token:
            listed = [("form_token", self.form_token()), *listed]
        sent = {"content-type": FORM, **headers} | ({} if site is None else {"sec-fetch-site": site})
        return self._sent("POST", path, urlencode(listed).encode(), sent)

    def upload(self, path: str, data: bytes) -> Shown:
        """Send a form with a file, as the page of a board does."""
        edge = b'--edge\r\ncontent-disposition: form-data; name="'
        token = edge + b'form_token"\r\n\r\n' + self.form_token().encode() + b"\r\n"
        body = token + edge + b'file"; filename="s.csv"\r\n\r\n' + data + b"\r\n--edge--\r\n"
        kind = {"content-type": "multipart/form-data; boundary=edge", "sec-fetch-site": "same-origin"}
        return self._sent("POST", path, body, kind)

    def form_token(self) -> str:
        return self.get("/admin/tokens" if self.door == "admin" else "/history").field("form_token")

    def _sent(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Shown:
        port = self.town.service.addresses[self.door].port
        connection = HTTPConnection("127.0.0.1", port, timeout=15)
        if self.cookies:
            headers = headers | {
                "cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            }
        try:
            connection.request(method, path, body, {"accept": "text/html"} | headers)
            reply = connection.getresponse()
            text = reply.read().decode()
        finally:
            connection.close()
        for line in reply.headers.get_all("set-cookie") or []:
            name, _, value = line.partition(";")[0].partition("=")
            if value.strip('"'):
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return Shown(reply.status, {name.lower(): value for name, value in reply.getheaders()}, text)
