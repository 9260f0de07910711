"""The settings of a connection: those that Postgres' clients read and set, and those of this server.

A transaction that is rolled back takes its settings back, as in Postgres. Settings that would change how values
are written are accepted only as they are: programs that ask for another encoding or style of dates are told so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite

from understudy.privacy.noise_name import LISTED, NOISES
from understudy.server.inquiry import MOST_REASON
from understudy.server.pg.states import Refusal

VERSION = "15.0"
VERSION_NUMBER = "150000"

DEFAULTS = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "enable_seqscan": "on",
    "extra_float_digits": "1",
    "geqo": "on",
    "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "quote_all_identifiers": "off",
    "role": "none",
    "row_security": "on",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": VERSION,
    "server_version_num": VERSION_NUMBER,
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "timezone": "UTC",
    "transaction_deferrable": "off",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "transform_null_equals": "off",
    "work_mem": "4MB",
    "xmlbinary": "base64",
    "xmloption": "content",
    "understudy.bounds": "off",
    "understudy.session": "",
    "understudy.alpha": "",
    "understudy.beta": "",
    "understudy.epsilon": "",
    "understudy.rho": "",
    "understudy.error": "",
    "understudy.in_session": "off",
    "understudy.noise": "auto",
    "understudy.request": "",
    "understudy.uncertified": "on",
    "understudy.why": "",
}
"""What a connection begins with; the names of all settings that there are, besides `prefix.anything`."""

REPORTED = {
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "session_authorization": "session_authorization",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
}
"""Settings that a client is told of, at the start and when they change, under the names that Postgres sends."""

_FIXED = frozenset(
    (
        "in_hot_standby", "integer_datetimes", "is_superuser", "lc_collate", "lc_ctype", "max_identifier_length",
        "max_index_keys", "server_encoding", "server_version", "server_version_num",
    )
)  # fmt: skip
_FLAGS = {
    "on": "on",
    "true": "on",
    "yes": "on",
    "1": "on",
    "off": "off",
    "false": "off",
    "no": "off",
    "0": "off",
}
_PRICES = ("understudy.epsilon", "understudy.rho", "understudy.error")
_TIMEOUTS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
_DURATION = re.compile(r"\s*(\d{1,10})\s*(ms|s|min|h|d)?\s*")
_MILLISECONDS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

MOST_SETTINGS = 200
"""Settings of the form `prefix.anything` that one connection may have."""

MOST_VALUE = 1000


class Settings:
    """The settings of one connection. `terms` are those of the session that questions are asked in, as texts."""

    def __init__(self, analyst: str, terms: Mapping[str, str]) -> None:
        self._terms = {f"understudy.{name}": value for name, value in terms.items()}
        self._defaults = {**DEFAULTS, **self._terms, "session_authorization": analyst}
        self._now = dict(self._defaults)
        self._before: dict[str, str] | None = None
        self._local: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        return self._now[name]

    def as_dict(self) -> dict[str, str]:
        return dict(self._now)

    def show(self, name: str) -> str:
        """The value of a setting; a `Refusal` where there is no such."""
        if name not in self._now:
            raise _unknown(name)
        return self._now[name]

    def is_on(self, name: str) -> bool:
        return self._now[name] == "on"

    def number(self, name: str) -> float | None:
        """The number that a setting holds; None where it is empty."""
        value = self._now[name]
        return float(value) if value else None

    @property
    def timeout(self) -> float | None:
        """The seconds that a statement may take; None for as long as it does."""
        found = int(self._now["statement_timeout"])
        return found / 1000 if found else None

    def use_as_default(self, name: str, value: str) -> None:
        """A setting that the client gave at the start: RESET goes back to it."""
        self.set(name, value)
        self._defaults[name.lower()] = self._now[name.lower()]

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set a setting, to its default where the value is None; a `Refusal` where it cannot be."""
        name = name.lower()
        if name not in self._now and "." not in name:
            raise _unknown(name)
        if len(self._now) >= len(DEFAULTS) + MOST_SETTINGS and name not in self._now:
            raise Refusal("53400", f"a connection has at most {MOST_SETTINGS} settings of its own")
        checked = self._defaults.get(name, "") if value is None else self._checked(name, value)
        if local:
            if self._before is None:
                return  # as in Postgres, it has no effect outside of a transaction
            self._local.setdefault(name, self._now.get(name, ""))
        else:
            self._local.pop(name, None)
        self._now[name] = checked

    def reset_all(self) -> None:
        self._now = dict(self._defaults)

    # ---- transactions

    def begin(self) -> None:
        self._before = dict(self._now)

    def end(self, *, commit: bool) -> None:
        """The end of a transaction: settings stay, but local ones, or all go back to what they were."""
        if not commit and self._before is not None:
            self._now = self._before
        else:
            self._now.update(self._local)
        self._before, self._local = None, {}

    def changed_since(self, told: Mapping[str, str]) -> dict[str, str]:
        """The reported settings that differ from what the client was told."""
        return {name: self._now[name] for name in REPORTED if told.get(name) != self._now[name]}

    # ---- what is accepted

    def _checked(self, name: str, value: str) -> str:
        if len(value) > MOST_VALUE:
            raise Refusal("22023", f'the value of "{name}" has more than {MOST_VALUE:,} characters')
        if name.startswith("understudy.") and name not in DEFAULTS:
            known = ", ".join(sorted(key for key in DEFAULTS if key.startswith("understudy.")))
            raise Refusal(
                "42704", f'unrecognized configuration parameter "{name}"', hint=f"There are: {known}"
            )
        if name in _FIXED and value.lower() != self._now[name].lower():
            raise Refusal("55P02", f'parameter "{name}" cannot be changed')
        if name in self._terms and value != self._terms[name]:
            return self._same_term(name, value)
        if name in _PRICES:
            return _price(name, value)
        if name == "understudy.noise":
            return _noise(value)
        if name in _TIMEOUTS:
            return _milliseconds(name, value)
        if name == "client_encoding":
            return _utf8(value)
        if name == "datestyle":
            return _iso(value)
        if name == "understudy.why" and len(value) > MOST_REASON:
            raise _invalid(name, value, f"A reason has at most {MOST_REASON:,} characters.")
        if DEFAULTS.get(name) in ("on", "off"):
            flag = _FLAGS.get(value.lower())
            if flag is None:
                raise _invalid(name, value, "Set it to on or off.")
            return "on" if name in ("transaction_read_only", "default_transaction_read_only") else flag
        if name in ("session_authorization", "role") and value.lower() not in (
            "default",
            "none",
            self._now[name],
        ):
            raise Refusal(
                "42501",
                f'cannot set "{name}"',
                hint="Who asks is the token's analyst: connect as another user.",
            )
        return value

    def _same_term(self, name: str, value: str) -> str:
        """The terms of the session are the server's: they can be read, and set to what they are."""
        known = self._terms[name]
        try:
            same = float(value) == float(known)
        except ValueError:
            same = False
        if not same:
            raise Refusal(
                "22023",
                f'"{name}" is {known} at this server, and cannot be {value[:40]}',
                hint="Its custodian sets the session's terms in server.yml; understudy.epsilon, understudy.rho or "
                "understudy.error ask a question by itself, at a price or an error of your own.",
            )
        return known


def _unknown(name: str) -> Refusal:
    return Refusal("42704", f'unrecognized configuration parameter "{name[:80]}"')


def _invalid(name: str, value: str, hint: str) -> Refusal:
    return Refusal("22023", f'invalid value for parameter "{name}": "{value[:80]}"', hint=hint)


def _price(name: str, value: str) -> str:
    """A positive number, or nothing: then questions go to the session."""
    if not value.strip():
        return ""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not isfinite(number) or number <= 0:
        raise _invalid(name, value, "Set it to a positive number, or to '' for the session's terms.")
    return value.strip()


def _noise(value: str) -> str:
    word = value.strip().lower() or NOISES[0]
    if word not in NOISES:
        raise _invalid("understudy.noise", value, f"Set it to {LISTED}.")
    return word


def _milliseconds(name: str, value: str) -> str:
    found = _DURATION.fullmatch(value)
    if found is None:
        raise _invalid(name, value, "Write a number of milliseconds, or for instance '30s'.")
    return str(int(found[1]) * _MILLISECONDS[found[2] or "ms"])


def _utf8(value: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", value.lower())
    if plain not in ("", "utf8", "unicode", "sqlascii"):
        raise _invalid("client_encoding", value, "This server speaks UTF8: SET client_encoding TO UTF8.")
    return "UTF8"


def _iso(value: str) -> str:
    parts = [part.strip().upper() for part in value.split(",") if part.strip()]
    orders = [part for part in parts if part in ("MDY", "DMY", "YMD")]
    if len(parts) - len(orders) - parts.count("ISO"):
        raise _invalid("datestyle", value, "This server writes dates as ISO: SET datestyle TO ISO.")
    return f"ISO, {orders[0] if orders else 'MDY'}"
