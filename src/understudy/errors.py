"""The tree of errors. A message says what to do next, and never holds a private value.

UnderstudyError
├── ParameterError        a number that a mechanism cannot work with (also a ValueError)
├── DomainError           an attribute, value or clique that the declared domain does not have
├── DeclarationError      understudy.yml is wrong; says line, field and remedy
├── QueryError            a question that cannot be asked of this domain
│   └── TooLargeError     a table of cells too large to hold; refused before it is allocated
├── SourceError           the table cannot be read, or does not have the declared columns
│   └── SourceChangedError  the table is not the one that was opened
├── LedgerError           the books cannot be kept or trusted; nothing is looked at until they can
├── StoreError            what a server keeps (tokens, questions asked, approvals) cannot be read or written
└── RefusedError          a well-formed request that this project does not grant
    ├── InsufficientBudgetError  carries what was requested and what remains
    ├── RequestConflictError     one request id, two different questions
    ├── OvertakenError           another process took this step of a journal first
    ├── HandleClosedError        a sparse vector that has said its last word
    ├── UnreadableError          about a column that its custodian found not to be what it is declared as
    └── ProtectionError          the exact door is closed under ``protect: privacy``
"""

from __future__ import annotations


class UnderstudyError(Exception):
    """Root of every error that Understudy raises on purpose."""


class ParameterError(UnderstudyError, ValueError):
    """A number that a mechanism cannot work with."""


class DomainError(UnderstudyError):
    """An attribute, value or clique that the declared domain does not have."""


class DeclarationError(UnderstudyError):
    """The declaration file is wrong at `line`, in `field`; `remedy` says what to write instead."""

    def __init__(
        self, problem: str, *, remedy: str, field: str = "", line: int | None = None, file: str = ""
    ) -> None:
        self.problem = problem
        self.remedy = remedy
        self.field = field
        self.line = line
        self.file = file
        place = file or "declaration"
        if line is not None:
            place += f", line {line}"
        if field:
            place += f", {field}"
        super().__init__(f"{place}: {problem}. {remedy}")


class QueryError(UnderstudyError):
    """A question that cannot be asked of this domain; the message says what can."""


class TooLargeError(QueryError):
    """A table of `cells` cells was refused before it was allocated; at most `limit` are allowed."""

    def __init__(
        self,
        what: str,
        *,
        cells: int,
        limit: int,
        why: str = "are held at once",
        remedy: str = "Ask about fewer attributes, or declare coarser bins",
    ) -> None:
        self.cells = cells
        self.limit = limit
        self.remedy = remedy
        super().__init__(f"{what} has {cells:,} cells; at most {limit:,} {why}. {remedy}.")


class SourceError(UnderstudyError):
    """The table cannot be read, or does not have the declared columns."""


class SourceChangedError(SourceError):
    """The table is not the one that was opened."""


class LedgerError(UnderstudyError):
    """The ledger cannot be written, read or trusted. No look happens without a durable debit.

    `remedy` says what the custodian can do. An entry that was being written when this was raised may or may not
    have been kept; if it was, its price is spent and its answer was not released.
    """

    def __init__(self, problem: str, *, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}. {remedy}")


class StoreError(UnderstudyError):
    """The state of a server, `server.db`, cannot be read, written or trusted; `remedy` says what to do.

    It holds no budget: what was spent stands in the ledgers.
    """

    def __init__(self, problem: str, *, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}. {remedy}")


class RefusedError(UnderstudyError):
    """A well-formed request that this project does not grant. Nothing was spent."""


class UnreadableError(RefusedError):
    """The custodian's reading found that the table, or `attributes` of it, cannot be read as it is declared.

    Without any names it is about the whole table, of which lines are lost. `when` says when it was read.
    """

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
            f"{what}: {why}, so that answers would be wrong; so says the custodian's reading of {when}. "
            f"Nothing was spent. The custodian mends how the text is declared to be written (`format`, "
            f"`missing`, `encoding` and others), or tolerates more with `unreadable`, and runs `understudy "
            f"check --read` again"
        )


class InsufficientBudgetError(RefusedError):
    """The request costs more than what remains; both are in the budget's own currency.

    `limit` names the share of the budget that binds; it is empty where the whole budget does. `remedy` says what
    to ask instead.
    """

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
        self.remedy = remedy
        where = f" within the limit for {limit}" if limit else ""
        super().__init__(
            f"this costs {currency} {requested:.6g} and {remaining:.6g} remains{where}. Nothing was spent. "
            f"{remedy}."
        )


class RequestConflictError(RefusedError):
    """The same request id came with another question.

    `request` is the id; `question` and `analyst` are the recorded ones, for the analyst who asked it: to anybody
    else they are empty.
    """

    def __init__(self, message: str, *, request: str = "", question: str = "", analyst: str = "") -> None:
        self.request = request
        self.question = question
        self.analyst = analyst
        super().__init__(message)


class OvertakenError(RefusedError):
    """Another process or thread took this step of a journal first. Nothing was written or spent."""


class HandleClosedError(RefusedError):
    """The handle has given every answer that it was charged for."""


class ProtectionError(RefusedError):
    """Exact comparisons are open only under ``protect: validity``."""
