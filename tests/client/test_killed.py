"""A server that is killed between a debit and its reply: the client asks the next one, which pays once."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable

import understudy as us
from served import Process, config, people, tokens
from understudy.project import open_project


class Between:
    """A proxy before a server's port, which loses one reply.

    The first reply to an ask comes back from the server and is not handed on: `lose` kills the server, and the
    client's connection is closed. Everything else is handed on.
    """

    def __init__(self, port: int, lose: Callable[[], int]) -> None:
        self._port = port
        self._lose = lose
        self.lost: list[bytes] = []
        self.asked = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            client, _ = self._listening.accept()
            with client:
                request = self._request(client)
                if not request:
                    return
                is_ask = b"/ask HTTP" in request
                self.asked += is_ask
                try:
                    reply = self._handed_on(request)
                except OSError:
                    continue
                if is_ask and not self.lost:
                    self.lost.append(reply)
                    self._port = self._lose()
                    continue
                client.sendall(reply)

    @staticmethod
    def _request(client: socket.socket) -> bytes:
        """A whole request; nothing where the client goes away."""
        held = b""
        while (end := held.find(b"\r\n\r\n")) < 0 or len(held) < end + 4 + _length(held):
            piece = client.recv(65536)
            if not piece:
                return b""
            held += piece
        return held

    def _handed_on(self, request: bytes) -> bytes:
        """One request on a connection of its own, which the server closes after its reply."""
        head, _, body = request.partition(b"\r\n\r\n")
        with socket.create_connection(("127.0.0.1", self._port), timeout=30) as server:
            server.sendall(head + b"\r\nconnection: close\r\n\r\n" + body)
            reply = b""
            while piece := server.recv(65536):
                reply += piece
        return reply

    def end(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        self._thread.join(10)
        self._listening.close()


def _length(request: bytes) -> int:
    found = re.search(rb"\r\ncontent-length: (\d+)", request, re.IGNORECASE)
    return 0 if found is None else int(found[1])


def test_an_answer_that_was_lost_with_its_server_is_paid_once(tmp_path):
    folder = people(tmp_path / "served", rows=200)
    (token,) = tokens(config(folder), "ada")
    servers = [Process(folder)]

    def killed_and_started() -> int:
        servers[0].end()
        servers.append(Process(folder))
        return servers[1].ports["http"]

    between = Between(servers[0].ports["http"], killed_and_started)
    try:
        with us.connect(f"http://127.0.0.1:{between.port}", token) as connection:
            answer = connection.ask("count by sex, area", rho=0.02)
            assert connection.budget().your_spent.amount == answer.cost.amount
    finally:
        between.end()
        servers[-1].end()
    assert (len(servers), between.asked, b'"state":"answered"' in between.lost[0]) == (2, 2, True)
    with open_project(folder / "understudy.yml") as project:
        (debit,) = (entry for entry in project.ledger.entries() if entry.kind == "debit")
        assert project.ledger.spent == answer.cost
        recorded = project.ask("count by sex, area", rho=0.02, request=debit.request, analyst="ada")
        assert recorded.as_dict() == answer.as_dict()
