"""A connection to a server: `us.connect(url)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from understudy.answer.answer import Answer
from understudy.answer.sql_answer import SqlAnswer
from understudy.client.address import ServerAddress
from understudy.client.history import History
from understudy.client.many import Progress
from understudy.client.published import PublishedRelease, PublishedReleases
from understudy.client.remote_session import RemoteSession
from understudy.client.remote_table import AskTerms, RemoteTable
from understudy.client.token_file import found_token
from understudy.client.told import ServerBudget, ServerQuote
from understudy.client.transport import Transport
from understudy.domain.attribute import close_to, listed
from understudy.errors import DomainError, ParameterError
from understudy.pages import notebook
from understudy.percent import percent_of
from understudy.privacy.noise_name import Noise

TIMEOUT_SECONDS = 120.0
"""For one reply, if nothing is said: a look at a large table may take long."""

PATIENCE_SECONDS = 30.0
"""For which a request that fails in passing is sent again, if nothing is said: a server starts within these."""

FIRST_CONTACT_SECONDS = 3.0
"""The same while a connection is made: a mistaken address should be told soon."""


def connect(
    url: str,
    token: str | None = None,
    *,
    timeout: float = TIMEOUT_SECONDS,
    patience: float = PATIENCE_SECONDS,
    ca: str | Path | None = None,
) -> Connection:
    """Connect to a server, such as ``https://data.example.org`` or ``http://127.0.0.1:8700``.

    url       the address of the server
    token     the analyst's token. Without one it is that of the environment variable UNDERSTUDY_TOKEN, else that
              of the server's line, ``URL TOKEN``, in the file ``understudy/tokens`` of the user's folder of
              settings (``~/.config``), which nobody else may be allowed to read
    timeout   how many seconds to wait for one reply: 120 by default, as a look at a large table may take long
    patience  for how many seconds a request is sent again that fails in passing: 30 by default
    ca        a file with the certificates of an authority of one's own; certificates are verified in any case

    Returns a `Connection`. Raises a `ParameterError` where the address is none or would send the token
    unencrypted, an `AccessError` where there is no token or the server does not know it, and a `ServerError` where
    the server cannot be reached.
    """
    address = ServerAddress.read(url)
    transport = Transport(address, found_token(address, token), timeout=timeout, patience=patience, ca=ca)
    try:
        return Connection(transport)
    except BaseException:
        transport.close()
        raise


class Connection:
    """A server, as one analyst sees it. `us.connect` makes one, of a `transport`; it is safe for threads.

    A server with one table is asked directly: ``connection.ask("count by sex")``. Where it has several, the
    argument `table` names one, or ``connection.table(name)`` is that table alone. A connection is closed by
    `close`, or at the end of a `with` block.

    Every call with a `table` raises a `DomainError` where there is none of that name, and a `ParameterError` where
    there are several and none is named. Every call that asks the server raises an `AccessError` where the token is
    not known any more or may not do this, and a `ServerError` where the server cannot be reached or its reply
    cannot be read.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._tables: dict[str, RemoteTable] = {}
        self._listed = self._refreshed(min(transport.patience, FIRST_CONTACT_SECONDS))

    def _refreshed(self, patience: float | None = None) -> list[Mapping[str, Any]]:
        """The tables as the server lists them now; those that are known stay the same objects."""
        found: list[Mapping[str, Any]] = self._transport.get("tables", patience=patience)["tables"]
        for line in found:
            self._tables.setdefault(line["name"], RemoteTable(self._transport, line["name"]))
        return found

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._transport.address.text

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that the server holds."""
        return tuple(line["name"] for line in self._listed)

    def table(self, name: str | None = None) -> RemoteTable:
        """The table that is called `name`; without one, the only table. The server is asked for an unknown name.

        Returns a `RemoteTable`. Raises a `DomainError` where there is no such table, and a `ParameterError` where
        there are several and none is named.
        """
        if name is None:
            if len(self.tables) != 1:
                names = ", ".join(self.tables) or "none"
                raise ParameterError(
                    f"the server has {len(self.tables)} tables: {names}",
                    remedy="name one, with `table=` or `table(name)`",
                    suggestions=self.tables,
                )
            name = self.tables[0]
        if name not in self.tables:
            self._listed = self._refreshed()
        if name not in self.tables:
            close = close_to(str(name), self.tables)
            raise DomainError(
                f"the server has no table {name!r}",
                remedy=f"it has: {listed(close, self.tables, '`connection.tables`')}",
                suggestions=close,
            )
        return self._tables[name]

    def ask(
        self, question: str, *, table: str | None = None, **terms: Unpack[AskTerms]
    ) -> Answer | SqlAnswer:
        """Answer a question such as ``count age < 30 by district``, or a SELECT statement.

        Without a price the `question` is asked in the session of the table, free where it follows from what
        was bought there; of the keywords `terms`, `epsilon`, `rho` or `error` (in people, or the unit of the
        numbers) measures it by itself, with `noise`; with `in_session` the `error` is kept in the session. A
        question that needs an approval raises an `ApprovalNeededError` whose `id` fetches the answer later, or is
        waited for: `wait` is a number of seconds, or True. Returns a `SqlAnswer` for a SELECT statement, else an
        `Answer`. Everything else, and what is raised, is as in `RemoteTable.ask`.
        """
        return self.table(table).ask(question, **terms)

    def ask_all(
        self,
        questions: Sequence[str],
        *,
        table: str | None = None,
        at_once: int = 4,
        progress: bool | Progress = False,
        **terms: Unpack[AskTerms],
    ) -> list[Answer | SqlAnswer]:
        """Answer many `questions`, `at_once` of them at a time; all are priced before the first is asked.

        `progress` is True for a line on the error stream, or a function of how many of how many are answered;
        `terms` are the keywords of `ask`, for all of them. Returns the answers in the order of the questions.
        Raises as `RemoteTable.ask_all` does.
        """
        return self.table(table).ask_all(questions, at_once=at_once, progress=progress, **terms)

    def sql(self, text: str, *, table: str | None = None, **terms: Unpack[AskTerms]) -> SqlAnswer:
        """Answer a SELECT statement, `text`; any other text is refused with a `QueryError`, and not sent.

        `terms` are the keywords of `ask`. Returns a `SqlAnswer`. Raises as `ask` does.
        """
        return self.table(table).sql(text, **terms)

    def quote(
        self,
        question: str,
        *,
        table: str | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        error: float | None = None,
        in_session: bool = False,
        noise: Noise = "auto",
    ) -> ServerQuote:
        """The most that a `question` would cost now, its error, and whether it needs an approval. Costs nothing.

        `epsilon`, `rho`, `error`, `in_session` and `noise` are those of `ask`. Returns a `ServerQuote`. Raises as
        `RemoteTable.quote` does.
        """
        return self.table(table).quote(
            question, epsilon=epsilon, rho=rho, error=error, in_session=in_session, noise=noise
        )

    def session(self, *, table: str | None = None, own: bool = False) -> RemoteSession:
        """The session in which questions without a price are asked; with `own`, one of your own is opened.

        Returns a `RemoteSession`. Raises a `RefusedError` where the server has but the one that all share and
        `own` is asked for, and where no session is open yet.
        """
        return self.table(table).session(own=own)

    def budget(self, *, table: str | None = None) -> ServerBudget:
        """What is left of a table's budget, of all and for you, and about how many more counts it pays for.

        Returns a `ServerBudget`. Asks about no data, and costs nothing.
        """
        return self.table(table).budget()

    def answer(self, id: str, *, wait: bool | float = False) -> Answer | SqlAnswer:
        """The answer of an earlier question, by the `id` that an `ApprovalNeededError` or `history` told.

        It was paid when it was answered: fetching it costs nothing. Raises an `ApprovalNeededError` where it still
        waits (`wait` as in `ask`), and a `RefusedError` with the custodian's reason where it was denied, or as it
        was refused.
        """
        document = self._transport.get("asks", id)
        return self.table(document["table"]).awaited(document, wait=wait)

    def history(self, *, table: str = "", state: str = "", analyst: str = "") -> History:
        """Your questions, the newest first, fetched page by page; an auditor's or a custodian's token sees all.

        Without arguments they are those of all tables. `table` chooses one table's, `analyst` one analyst's, and
        `state` those that are `answered`, `waiting` (for approval), `refused` or `asking`. Returns a `History`.
        """
        return History(self._transport, {"table": table, "state": state, "analyst": analyst})

    def releases(self) -> PublishedReleases:
        """The releases that the server shows, by name; each can be fetched, and opened with `us.Release.load`.

        Returns a mapping from names to `PublishedRelease`s. What was released costs nothing any more.
        """
        found = self._transport.get("releases")["releases"]
        return PublishedReleases({plain["name"]: PublishedRelease(self._transport, plain) for plain in found})

    def close(self) -> None:
        """Close the connections to the server; whatever asks afterwards gets a `ClosedError`."""
        self._transport.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.url!r}, {_tables_told(self.tables)})"

    def _repr_html_(self) -> str:
        self._listed = self._refreshed()
        rows = [
            [line["name"], "" if line["left"] is None else percent_of(line["left"]), _state(line)]
            for line in self._listed
        ]
        return notebook.panel(self.url, notebook.table(["table", "left of the budget", ""], rows))


def _tables_told(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    return f"{'table' if len(names) == 1 else 'tables'} {shown}"


def _state(line: Mapping[str, Any]) -> str:
    if line["paused"] is not None:
        return f"paused: {line['paused']}" if line["paused"] else "paused"
    return "" if line["available"] else "not available at the moment"
