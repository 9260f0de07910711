"""The lines of a drafted ``understudy.yml``, before they are text: what is known, what was seen, what is lacking.

Every draft is written here, whether it was read off a table or off another tool's description of one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import yaml

from understudy.declaration.file import parse
from understudy.declaration.node import Node
from understudy.domain.attribute import same_text
from understudy.errors import DeclarationError

MARK = "# READ OFF THE DATA: review"
LACK = "# MISSING:"

EMPTY = {"values": "[]", "bounds": "[]", "edges": "[]"}
"""What stands in a draft for a field that is not known; like the empty text, no declaration accepts it."""


@dataclass(frozen=True)
class OutlineEntry:
    """A line ``key: value``, or ``key: {field: value, …}``; a plain value is the field with the empty name.

    Values are YAML text. `lacks` says for a field that is not known what has to be written there; `seen` that
    the line tells what the data holds; `left_out` why the line is a comment only.
    """

    key: str
    fields: dict[str, str]
    lacks: dict[str, str]
    remark: str = ""
    seen: bool = False
    left_out: str = ""

    @classmethod
    def of(cls, key: str, value: str, remark: str = "") -> OutlineEntry:
        return cls(key, {"": value}, {}, remark)

    @classmethod
    def lacking(cls, key: str, what: str) -> OutlineEntry:
        return cls(key, {}, {"": what})

    @classmethod
    def without(cls, key: str, why: str, *, seen: bool = False) -> OutlineEntry:
        return cls(key, {}, {}, left_out=why, seen=seen)

    @property
    def column(self) -> str:
        """The column of an attribute."""
        return unquoted(self.fields["column"]) if "column" in self.fields else self.key

    def filled(self, **known: str) -> OutlineEntry:
        """The same line with some of its fields known."""
        lacks = {field: what for field, what in self.lacks.items() if field not in known}
        return replace(self, fields=self.fields | known, lacks=lacks)

    def line(self) -> str:
        if self.left_out:
            text, comments = f"# {scalar(self.key)}: left out, {plain(self.left_out)}", []
        else:
            text, comments = f"{scalar(self.key)}: {self._value()}".rstrip(), []
            if self.lacks:
                comments.append(f"{LACK} {'; '.join(plain(what) for what in self.lacks.values())}")
        comments += [MARK] if self.seen else []
        comments += [f"# {plain(self.remark)}"] if self.remark else []
        return "  ".join([text, *comments])

    def _value(self) -> str:
        known = self.fields | {field: EMPTY.get(field, "") for field in self.lacks}
        if set(known) == {""}:
            return known[""]
        return "{" + ", ".join(f"{field}: {value}" for field, value in known.items()) + "}"


@dataclass(frozen=True)
class Outline:
    """A draft: comments, settings, attributes, and what the description says that a declaration cannot."""

    heading: tuple[str, ...]
    settings: tuple[OutlineEntry, ...]
    attributes: tuple[OutlineEntry, ...]
    dropped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(_well_named(entry) for entry in self.attributes))

    @property
    def setting(self) -> dict[str, OutlineEntry]:
        """The settings by name."""
        return {entry.key: entry for entry in self.settings}

    def with_setting(self, entry: OutlineEntry) -> Outline:
        """The outline with a setting in the place of its namesake; a new one goes after the source."""
        settings = [entry if old.key == entry.key else old for old in self.settings]
        if entry not in settings:
            place = next((i for i, old in enumerate(settings, 1) if old.key == "source"), len(settings))
            settings.insert(place, entry)
        return replace(self, settings=tuple(settings))

    def without_setting(self, key: str) -> Outline:
        return replace(self, settings=tuple(entry for entry in self.settings if entry.key != key))

    def lines(self) -> list[tuple[str, OutlineEntry | None]]:
        """The lines of the file, each with the entry it shows."""
        comments = [f"# {plain(line)}" for line in self.heading]
        if self.dropped:
            comments.append("# Not taken over:")
            comments += [f"#   - {plain(line)}" for line in self.dropped]
        return [
            *((line, None) for line in comments),
            ("understudy: 1", None),
            *((entry.line(), entry) for entry in self.settings),
            ("attributes:", None),
            *((f"  {entry.line()}", entry) for entry in self.attributes),
        ]

    def text(self) -> str:
        return "\n".join(line for line, _ in self.lines()) + "\n"

    def unfilled(self) -> dict[int, str]:
        """Line numbers and what has to be written there."""
        return {
            number: f"{entry.key}: {'; '.join(entry.lacks.values())}"
            for number, (_, entry) in enumerate(self.lines(), 1)
            if entry is not None and entry.lacks
        }


def _well_named(entry: OutlineEntry) -> OutlineEntry:
    """An attribute under a name that a declaration accepts; the column keeps its own."""
    name = same_text(entry.key.strip())
    if entry.left_out or name == entry.key != "":
        return entry
    if not name:
        return OutlineEntry.without(entry.key, "it has no name")
    return replace(entry, key=name, fields=entry.fields | {"column": scalar(entry.key)})


def unreviewed(text: str) -> list[int]:
    """The numbers of the lines that still carry the mark of the data."""
    return [number for number, line in enumerate(text.splitlines(), 1) if MARK in line]


def objection(entry: OutlineEntry, *, attribute: bool) -> str:
    """What a declaration with this line would be refused for; empty where it would be accepted."""
    if entry.lacks or entry.left_out:
        return ""
    settings = {
        "name": "name: t", "source": "source: t.csv", "neighbours": "neighbours: add-remove",
        "budget": "budget: {epsilon: 1}", "attributes": "attributes:\n  a: {type: boolean}",
    }  # fmt: skip
    settings |= {"attributes": f"attributes:\n  {entry.line()}"} if attribute else {entry.key: entry.line()}
    try:
        parse("\n".join(["understudy: 1", *settings.values()]))
    except DeclarationError as error:
        return error.problem
    return ""


def placed(node: Node, entry: OutlineEntry, *, attribute: bool = True) -> OutlineEntry:
    """The entry, unless a declaration would refuse it: then the place in the description is to blame."""
    if problem := objection(entry, attribute=attribute):
        node.fail(problem, "Change the description")
    return entry


def scalar(text: str) -> str:
    """Text as YAML that reads back as the same text, inside brackets as well."""
    if re.fullmatch(r"[A-Za-z_][\w-]*", text, flags=re.ASCII):
        return text
    return yaml.dump(text, default_style='"', allow_unicode=True, width=10**9).strip()


def unquoted(written: str) -> str:
    """The inverse of `scalar`."""
    return yaml.load(written, Loader=yaml.BaseLoader)


def plain(text: str, limit: int = 240) -> str:
    """Text that can stand in a comment: one line, printable, not endless."""
    shown = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def name_from(text: str) -> str:
    """A name that a declaration accepts, made from another."""
    name = re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII).strip("-._") or "table"
    return name[:100]
