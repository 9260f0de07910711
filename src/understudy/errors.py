"""The tree of errors. A message says what to do next, and never holds a private value.

UnderstudyError
├── ParameterError        a number that a mechanism cannot work with (also a ValueError)
├── DomainError           an attribute, value or clique that the declared domain does not have
├── DeclarationError      understudy.yml is wrong; says line, field and remedy
├── QueryError            a question that cannot be asked of this domain
│   ├── TooLargeError     a table of cells too large to hold; refused before it is allocated
│   ├── TooLongError      a question with too many characters or words; refused before it is parsed
│   └── StatementError    SQL on public rows that was not run to its end; carries a reason
├── SourceError           the table cannot be read, or does not have the declared columns
│   └── SourceChangedError  the table is not the one that was opened
├── LedgerError           the books cannot be kept or trusted; nothing is looked at until they can
├── StoreError            what a server keeps (tokens, questions asked, approvals) cannot be read or written
├── ServerError           a server cannot be reached, or its reply cannot be read (also a ConnectionError)
└── RefusedError          a well-formed request that this project does not grant
    ├── InsufficientBudgetError  carries what was requested and what remains
    ├── PriceRoseError           costs more than whoever asked has agreed to
    ├── RefusedAfterChargeError  refused when something was bought for it already; carries what was charged
    ├── RequestConflictError     one request id, two different questions
    ├── OvertakenError           another process took this step of a journal first
    ├── HandleClosedError        a sparse vector, a holdout or the like that has given all its answers
    ├── UnreadableError          about a column that its custodian found not to be what it is declared as
    ├── ClosedError              a project or a ledger that was closed, and answers no more
    ├── AccessError              a server does not know the token, or its role may not do this
    ├── ApprovalNeededError      a server keeps the question until a custodian has decided about it
    └── ProtectionError          exact values are not given under ``protect: privacy``

Every error has two faces. `code`, `problem`, `remedy` and `suggestions` are for whoever asked, who may be on
another machine: they hold no path, no address, no statement of an engine and no driver's message. The text,
``str(error)``, is for whoever runs the program on their own machine, and may add what only a custodian may read.
Of a `SourceError` and a `LedgerError` everything that is given is the custodian's, unless it is given as public.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from understudy.percent import percent_of


class UnderstudyError(Exception):
    """Root of every error that Understudy raises on purpose.

    code         a short name of the kind of error, the same in every version, such as `budget`
    problem      what is wrong, in one sentence without its full stop
    remedy       what to do about it; empty where there is nothing to say
    suggestions  what could be written instead: names of attributes, values, functions or whole comparisons
    detail       what a custodian may read besides, such as the path of a file; empty for most errors

    The text of the error is the detail, where there is one, or else the problem and the remedy, unless `text` puts
    them otherwise.
    """

    code: ClassVar[str] = "error"

    def __init__(
        self,
        problem: str = "",
        *,
        remedy: str = "",
        suggestions: Iterable[str] = (),
        detail: str = "",
        text: str = "",
    ) -> None:
        self.problem = problem
        self.remedy = remedy
        self.suggestions = tuple(suggestions)
        self.detail = detail
        super().__init__(detail or text or _sentences(problem, remedy))


def _sentences(problem: str, remedy: str) -> str:
    """A remedy that begins with a capital letter is a sentence of its own."""
    if not remedy:
        return problem
    return f"{problem}. {remedy}" if remedy[0].isupper() else f"{problem}; {remedy}"


class ParameterError(UnderstudyError, ValueError):
    """A number that a mechanism cannot work with."""

    code = "parameter"


class DomainError(UnderstudyError):
    """An attribute, value or clique that the declared domain does not have."""

    code = "domain"


class DeclarationError(UnderstudyError):
    """The declaration `file` is wrong at `line`, in `field`; `remedy` says what to write instead.

    `line` is None, and the others are empty, where nothing is known of them.
    """

    code = "declaration"

    def __init__(
        self, problem: str, *, remedy: str, field: str = "", line: int | None = None, file: str = ""
    ) -> None:
        self.field = field
        self.line = line
        self.file = file
        place = file or "declaration"
        if line is not None:
            place += f", line {line}"
        if field:
            place += f", {field}"
        super().__init__(problem, remedy=remedy, detail=f"{place}: {problem}. {remedy}")


class QueryError(UnderstudyError):
    """A question that cannot be asked of this domain; the message says what can.

    `cuts` is the name of an ordered attribute and the edges at which a condition would cut its bins, where that is
    what is wrong; else None.
    """

    code = "question"
    cuts: tuple[str, tuple[Any, ...]] | None = None


class TooLargeError(QueryError):
    """A table of `cells` cells was refused before it was allocated; at most `limit` are allowed.

    `what` names the table in the message, and `why` says what becomes of cells up to the limit; `problem` stands
    in place of both, where something else than the number of cells is told.
    """

    code = "too-large"

    def __init__(
        self,
        what: str,
        *,
        cells: int,
        limit: int,
        why: str = "are held at once",
        remedy: str = "Ask about fewer attributes, or declare coarser bins",
        problem: str = "",
    ) -> None:
        self.cells = cells
        self.limit = limit
        problem = problem or f"{what} has {cells:,} cells; at most {limit:,} {why}"
        super().__init__(problem, remedy=remedy, text=f"{problem}. {remedy}.")


class TooLongError(QueryError):
    """A question has more than `limit` characters, or words; it was refused before it was parsed."""

    code = "too-long"

    def __init__(self, problem: str, *, remedy: str, limit: int) -> None:
        self.limit = limit
        super().__init__(problem, remedy=remedy)


class StatementError(QueryError):
    """SQL on public rows (released, synthetic or of a catalog) was refused, failed, or took too much.

    reason  why, for programs: `syntax`, `not-select`, `undefined-table`, `undefined-column`, `undefined-function`,
            `undefined-type`, `ambiguous`, `grouping`, `types`, `value`, `failed`, `time`, `size`, `busy` or
            `unavailable`
    """

    code = "statement"

    def __init__(
        self, problem: str, *, reason: str, remedy: str = "", suggestions: Iterable[str] = ()
    ) -> None:
        self.reason = reason
        super().__init__(problem, remedy=remedy, suggestions=suggestions)


class _CustodiansError(UnderstudyError):
    """An error whose text is the custodian's; analysts are shown what its class says, unless words are given."""

    _problem: ClassVar[str]
    _remedy: ClassVar[str] = "Try again later under the same request id; if it stays so, tell the custodian"

    def __init__(self, detail: str, *, problem: str = "", remedy: str = "") -> None:
        super().__init__(problem or self._problem, remedy=remedy or self._remedy, detail=detail)


class SourceError(_CustodiansError):
    """The table cannot be read, or does not have the declared columns.

    What it is raised with is for the custodian, in `detail` and in the text; `problem` and `remedy` are what an
    analyst may read, and name no file, server or column.
    """

    code = "source"
    _problem = "the table cannot be read at the moment"


class SourceChangedError(SourceError):
    """The table is not the one that was opened."""

    code = "source-changed"
    _problem = "the table is not the one that was opened"
    _remedy = "Tell the custodian, who opens the project again if it is the same people's data"


class LedgerError(_CustodiansError):
    """The ledger cannot be written, read or trusted. No look happens without a durable debit.

    What it is raised with, and the `remedy` given there, are for the custodian, in `detail` and in the text; the
    attributes `problem` and `remedy` are what an analyst may read. An entry that was being written when this was
    raised may or may not have been kept; if it was, its price is spent and its answer was not released.
    """

    code = "ledger"
    _problem = "the ledger cannot be used at the moment, and nothing is answered without it"

    def __init__(self, detail: str, *, remedy: str = "") -> None:
        super().__init__(_sentences(detail, remedy))


class StoreError(_CustodiansError):
    """The state of a server, `server.db`, cannot be read, written or trusted.

    It holds no budget: what was spent stands in the ledgers. As of a `LedgerError`, what it is raised with is for
    the custodian, in `detail` and in the text.
    """

    code = "store"
    _problem = "the server cannot use what it keeps at the moment"

    def __init__(self, detail: str, *, remedy: str = "") -> None:
        super().__init__(_sentences(detail, remedy))


class ServerError(UnderstudyError, ConnectionError):
    """A server cannot be reached, does not answer in time, or replies what cannot be read.

    `request` is the id of a question that may have been asked and paid for: asked again under it, the question is
    answered once and paid once. It is empty where nothing was asked.
    """

    code = "server"

    def __init__(self, problem: str, *, remedy: str, request: str = "", detail: str = "") -> None:
        self.request = request
        super().__init__(problem, remedy=remedy, detail=detail)


class RefusedError(UnderstudyError):
    """A well-formed request that this project does not grant. Nothing was spent.

    One that was charged for before it was refused is a `RefusedAfterChargeError`, and says so.
    """

    code = "refused"


class UnreadableError(RefusedError):
    """The custodian's reading found that the table, or `attributes` of it, cannot be read as it is declared.

    Without any names it is about the whole table, of which lines are lost. `when` says when it was read.
    """

    code = "unreadable"

    def __init__(self, attributes: tuple[str, ...], *, when: str) -> None:
        self.attributes = attributes
        self.when = when
        what = ", ".join(attributes) if attributes else "the table"
        why = (
            "too many values cannot be read as they are declared"
            if attributes
            else "too many lines cannot be read as rows"
        )
        super().__init__(
            f"{what}: {why}, so that answers would be wrong; so says the custodian's reading of {when}",
            remedy="Nothing was spent. The custodian mends how the text is declared to be written (`format`, "
            "`missing`, `encoding` and others), or tolerates more with `unreadable`, and runs `understudy "
            "check --read` again",
        )


class InsufficientBudgetError(RefusedError):
    """The request costs more than what remains. Nothing was spent.

    `requested` and `remaining` are amounts in `currency`, the budget's own (`epsilon` or `rho`), or what else ran
    out (`delta`, or the `beta` of a session). `limit` names the share of the budget that binds; it is empty where
    the whole budget does. `remedy` says what to ask instead.
    """

    code = "budget"

    def __init__(
        self,
        *,
        requested: float,
        remaining: float,
        currency: str,
        limit: str = "",
        remedy: str = "Ask with a smaller price, or for a wider error",
    ) -> None:
        self.requested = requested
        self.remaining = remaining
        self.currency = currency
        self.limit = limit
        where = f" within the limit for {limit}" if limit else ""
        problem = f"this costs {currency} {requested:.6g} and {remaining:.6g} remains{where}"
        super().__init__(problem, remedy=remedy, text=f"{problem}. Nothing was spent. {remedy}.")


class PriceRoseError(RefusedError):
    """A question costs more now than whoever asked has agreed to; both are in the budget's own currency.

    requested  what it would cost
    agreed     what is left of the amount that was agreed to
    currency   that of the budget: `epsilon` or `rho`
    """

    code = "price-rose"

    def __init__(self, *, requested: float, agreed: float, currency: str) -> None:
        self.requested = requested
        self.agreed = agreed
        self.currency = currency
        super().__init__(
            f"this costs {currency} {requested:.6g} now, and {agreed:.6g} is left of what was agreed to",
            remedy="Nothing more was bought; what was bought before stays known. Ask for the price again, or "
            "agree to more",
        )


class RefusedAfterChargeError(RefusedError):
    """A question to a session was refused when something was bought for it already, which stays known.

    `why` is the reason of the refusal, and `remedy` what to ask instead.

    charged    what was charged for it, in `currency`
    share      the part of the whole budget that this is
    remaining  what is left now of the budget for whoever asked, in `currency`
    currency   that of the budget: `epsilon` or `rho`
    """

    code = "refused-after-charge"

    def __init__(
        self, why: str, *, remedy: str, charged: float, share: float, remaining: float, currency: str
    ) -> None:
        self.charged = charged
        self.share = share
        self.remaining = remaining
        self.currency = currency
        super().__init__(
            f"{why}. {currency} {charged:.4g} was charged for that ({percent_of(share)} of the budget), and what "
            f"was bought stays known; {currency} {remaining:.4g} remains",
            remedy=remedy[:1].upper() + remedy[1:],
        )


class RequestConflictError(RefusedError):
    """The same request id came with another question.

    `request` is the id; `question` and `analyst` are the recorded ones, for the analyst who asked it: to anybody
    else they are empty.
    """

    code = "request-conflict"

    def __init__(
        self,
        problem: str,
        *,
        remedy: str = "",
        request: str = "",
        question: str = "",
        analyst: str = "",
    ) -> None:
        self.request = request
        self.question = question
        self.analyst = analyst
        super().__init__(problem, remedy=remedy)


class OvertakenError(RefusedError):
    """Another process or thread took this step of a journal first. Nothing was written or spent."""

    code = "overtaken"


class HandleClosedError(RefusedError):
    """What was opened for a number of answers has given them all, or has lost its state.

    It is raised by a sparse vector, a holdout, and the algorithms of the lectures; the message says what to open
    instead.
    """

    code = "handle-closed"


class ClosedError(RefusedError):
    """A project or a ledger that was closed was used again, or was closed by another thread while it was used.

    In the second case a charge may stand in the ledger without its answer: the same request, asked again after
    opening, gets it and pays nothing more.
    """

    code = "closed"


class ProtectionError(RefusedError):
    """Exact comparisons are open only under ``protect: validity``."""

    code = "protection"


class AccessError(RefusedError):
    """A server does not know the token, or the token's role or kind may not do this. Nothing was spent."""

    code = "access"


class ApprovalNeededError(RefusedError):
    """The question waits for a custodian's approval. Nothing was spent yet.

    id        under which a connection's `answer` tells what became of it
    request   the request id under which the question was asked
    price     what it would cost, in `currency`
    share     the part of the whole budget that this is
    expires   when the question expires if nobody decides, as text in UTC
    """

    code = "approval"

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        id: str = "",
        request: str = "",
        currency: str = "",
        price: float = 0.0,
        share: float = 0.0,
        expires: str = "",
    ) -> None:
        self.id = id
        self.request = request
        self.currency = currency
        self.price = price
        self.share = share
        self.expires = expires
        super().__init__(problem, remedy=remedy)
