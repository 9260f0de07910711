"""Check an Understudy ledger with nothing but Python: this file imports the standard library only.

It shares no code with the program that wrote the ledger. Every price is worked out again, in exact fractions, from
the recorded event; every hash, number, sum, link and bound is checked.

    Laplace noise of scale b on values that one person moves by l1       epsilon = l1/b      rho = epsilon^2/2
    Gaussian noise of variance v on values moved by sqrt(l2_squared)     no epsilon          rho = l2_squared/(2v)
    one selection by the exponential mechanism                           epsilon             rho = epsilon^2/8
    a sparse vector; randomised reports; what was spent before           epsilon             rho = epsilon^2/2
    several events                                                       sum                 sum

Prices are whole numbers of 10^-15, rounded up. A budget (epsilon, delta) is kept as a cap on rho: rho-zCDP implies
delta = exp((a-1)(a rho - epsilon)) (1-1/a)^a / (a-1) for every order a > 1.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from fractions import Fraction

FIELDS = (
    "number", "kind", "at", "request", "question", "analyst", "event", "cost", "total", "debit", "step", "answer",
    "state", "terms", "previous", "hash",
)  # fmt: skip
UNITS = 10**15
WHEN = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z")
HASH = re.compile(r"[0-9a-f]{64}")
USED = {
    "open": {"event", "terms"},
    "debit": {"request", "question", "analyst", "event"},
    "answer": {"debit", "step", "answer", "state"},
    "step": {"question", "debit", "step", "answer", "state"},
}
OPTIONAL = {"state"}


class Wrong(Exception):
    """What is wrong with an entry."""


def verify(document: dict) -> dict:
    """The verdict on an exported ledger: what is wrong (nothing, if it is sound), and the totals.

    `document` has the entries, the head (how many there are, and the last hash) and, where they were exported, the
    answers as base64 by entry number.
    """
    check = Check(document)
    check.run()
    return {
        "sound": not check.problems,
        "problems": check.problems,
        "table": check.terms.get("table"),
        "entries": len(document.get("entries", ())),
        "debits": len(check.requests),
        "answers_checked": check.answers_checked,
        "currency": check.terms.get("currency"),
        "spent_units": check.total,
        "cap_units": check.terms.get("cap"),
        "epsilon": check.terms.get("epsilon"),
        "delta": check.terms.get("delta"),
        "head": check.previous,
    }


class Check:
    """One pass over the entries; each problem is noted with its place, and the pass goes on."""

    def __init__(self, document: dict) -> None:
        self.document = document
        self.problems: list[str] = []
        self.terms: dict = {}
        self.previous = "0" * 64
        self.at = ""
        self.total = 0
        self.requests: set[str] = set()
        self.open_debits: dict[int, tuple[int, bool] | None] = {}
        self.answers_checked = 0
        self.answer_numbers: set[str] = set()

    def run(self) -> None:
        entries = self.document.get("entries", [])
        for place, entry in enumerate(entries, start=1):
            try:
                self.shape(entry)
                self.link(entry, place)
                getattr(self, "check_" + entry["kind"])(entry)
            except Wrong as wrong:
                self.problems.append(f"entry {place}: {wrong}")
            except (KeyError, ValueError, TypeError, ArithmeticError) as error:
                self.problems.append(f"entry {place}: it cannot be understood ({type(error).__name__})")
            self.go_on(entry)
        head = self.document.get("head", {})
        if (head.get("entries"), head.get("hash")) != (len(entries), self.previous):
            self.problems.append("the end: the ledger's head is another entry than the last one here")
        if not entries:
            self.problems.append("the ledger has no entries")
        for number in (self.document.get("answers") or {}).keys() - self.answer_numbers:
            self.problems.append(f"an answer is kept for entry {number}, which is none")

    def go_on(self, entry: object) -> None:
        """Continue from what the entry says, so that one change is reported once and not at every later entry."""
        if isinstance(entry, dict):
            self.previous = str(entry.get("hash"))
            self.at = str(entry.get("at"))
            if type(entry.get("total")) is int:
                self.total = entry["total"]

    def shape(self, entry: dict) -> None:
        if not isinstance(entry, dict) or sorted(entry) != sorted(FIELDS):
            raise Wrong("its fields are not those of an entry")
        if entry["kind"] not in USED:
            raise Wrong("its kind is not known")
        for name in FIELDS[3:7] + FIELDS[9:14]:
            used = name in USED[entry["kind"]]
            if (entry[name] is not None and not used) or (
                entry[name] is None and used and name not in OPTIONAL
            ):
                raise Wrong(f"the field {name} does not belong to this kind, or is missing")
        for name in ("number", "cost", "total"):
            if type(entry[name]) is not int or entry[name] < 0:
                raise Wrong(f"{name} is not a whole number")

    def link(self, entry: dict, place: int) -> None:
        if entry["number"] != place:
            raise Wrong(f"it has the number {entry['number']}: entries were removed, added or reordered")
        if (entry["kind"] == "open") != (place == 1):
            raise Wrong("a ledger is opened by its first entry, and only there")
        if entry["previous"] != self.previous:
            raise Wrong("the link to the entry before it is broken")
        if entry["hash"] != entry_hash(entry):
            raise Wrong("its hash does not fit its fields: it was changed")
        if not WHEN.fullmatch(entry["at"]) or entry["at"] < self.at:
            raise Wrong("its time is before the entry before it")

    def check_open(self, entry: dict) -> None:
        terms = json.loads(entry["terms"])
        if sorted(terms) != sorted(("format", "table", "epsilon", "delta", "currency", "cap")):
            raise Wrong("its terms are not understood")
        if terms["format"] != 1:
            raise Wrong("its format is not known to this verifier")
        self.terms = terms
        if terms["table"] != self.document.get("table"):
            raise Wrong("it is the ledger of another table")
        check_cap(terms)
        self.pay(entry)

    def check_debit(self, entry: dict) -> None:
        if entry["request"] in self.requests or not entry["request"]:
            raise Wrong("its request id was charged before, or is empty")
        self.requests.add(entry["request"])
        self.open_debits[entry["number"]] = None
        self.pay(entry)

    def pay(self, entry: dict) -> None:
        cost = math.ceil(price(json.loads(entry["event"]), self.terms["currency"]) * UNITS)
        if entry["cost"] != cost:
            raise Wrong(f"it was charged {entry['cost']} units; its event costs {cost}")
        if entry["total"] != self.total + cost:
            raise Wrong("the sum is wrong")
        if entry["total"] > self.terms["cap"]:
            raise Wrong("the budget is overspent")

    def check_answer(self, entry: dict) -> None:
        if entry["debit"] not in self.open_debits:
            raise Wrong("its debit does not exist")
        if self.open_debits[entry["debit"]] is not None or entry["step"] != 0:
            raise Wrong("its debit was answered before")
        self.free(entry)

    def check_step(self, entry: dict) -> None:
        before = self.open_debits.get(entry["debit"])
        if before is None or not before[1] or entry["state"] is None:
            raise Wrong("its handle does not exist")
        if entry["step"] != before[0] + 1:
            raise Wrong("the steps of its handle do not follow each other")
        self.free(entry)

    def free(self, entry: dict) -> None:
        self.open_debits[entry["debit"]] = (entry["step"], entry["state"] is not None)
        if entry["cost"] != 0 or entry["total"] != self.total:
            raise Wrong("keeping an answer costs nothing, and the sum is wrong")
        for name in ("answer", "state"):
            if entry[name] is not None and not HASH.fullmatch(entry[name]):
                raise Wrong(f"its {name} is not a hash")
        answers = self.document.get("answers")
        self.answer_numbers.add(str(entry["number"]))
        if answers is None:
            return
        kept = answers.get(str(entry["number"]))
        if kept is None:
            raise Wrong("its answer is missing")
        if hashlib.sha256(base64.b64decode(kept, validate=True)).hexdigest() != entry["answer"]:
            raise Wrong("its answer is not the one that was given")
        self.answers_checked += 1


def entry_hash(entry: dict) -> str:
    """SHA-256 of the entry without its hash, as JSON with sorted keys and no spaces."""
    fields = {name: value for name, value in entry.items() if name != "hash"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"understudy entry 1\n" + text.encode("ascii")).hexdigest()


def price(event: dict, currency: str) -> Fraction:
    """What an event costs: epsilon or rho, exactly."""
    kind = event["event"]
    if kind == "Together":
        return sum((price(part, currency) for part in event["events"]), Fraction(0))
    numbers = {name: Fraction(text) for name, text in event.items() if name != "event"}
    if any(value < 0 for value in numbers.values()):
        raise Wrong("its event has a negative number")
    pure = currency == "epsilon"
    if kind == "LaplaceNoise" and set(numbers) == {"l1", "scale"}:
        epsilon = numbers["l1"] / numbers["scale"]
        return epsilon if pure else epsilon * epsilon / 2
    if kind == "GaussianNoise" and set(numbers) == {"l2_squared", "variance"}:
        if pure and numbers["l2_squared"]:
            raise Wrong("Gaussian noise has no price in epsilon")
        return numbers["l2_squared"] / (2 * numbers["variance"])
    if set(numbers) != {"epsilon"}:
        raise Wrong("its event is not understood")
    epsilon = numbers["epsilon"]
    if kind == "Selection":
        return epsilon if pure else epsilon * epsilon / 8
    if kind in ("SparseVector", "RandomizedReport", "SpentBefore"):
        return epsilon if pure else epsilon * epsilon / 2
    raise Wrong("its event is not known to this verifier")


def check_cap(terms: dict) -> None:
    """The cap must follow from the budget."""
    epsilon, delta, cap = Fraction(terms["epsilon"]), Fraction(terms["delta"]), terms["cap"]
    if type(cap) is not int or cap < 0 or epsilon <= 0 or not 0 <= delta < 1:
        raise Wrong("its budget makes no sense")
    if delta == 0:
        if terms["currency"] != "epsilon" or cap != math.floor(epsilon * UNITS):
            raise Wrong("its cap is not its epsilon")
        return
    if terms["currency"] != "rho":
        raise Wrong("a budget with a delta is kept in rho")
    implied = zcdp_log_delta(cap / UNITS, float(epsilon))
    if implied > math.log(delta) + 1e-6:
        raise Wrong("its cap on rho does not imply its epsilon and delta")
    if cap and zcdp_log_delta(cap / UNITS * 1.01, float(epsilon)) < math.log(delta):
        raise Wrong("its cap on rho is not the one of its epsilon and delta")


def zcdp_log_delta(rho: float, epsilon: float) -> float:
    """The least log delta over the orders, by a grid that is refined around its best point."""
    if rho == 0:
        return -math.inf

    def at(log_gap: float) -> float:
        gap = math.exp(log_gap)
        order = 1 + gap
        return gap * (order * rho - epsilon) + order * math.log(gap / order) - math.log(gap)

    low, high = -30.0, 40.0
    for _ in range(12):
        points = [low + (high - low) * i / 40 for i in range(41)]
        best = min(points, key=at)
        low, high = best - (high - low) / 40, best + (high - low) / 40
    return at((low + high) / 2)


def report(document: dict, expected_head: str = "") -> tuple[str, int]:
    """The verdict in words, and the exit status: 0 if the ledger is sound."""
    verdict = verify(document)
    if expected_head and verdict["head"] != expected_head:
        verdict["problems"].append("the end: the last hash is not the expected one (an older or other copy)")
    lines = [f"ledger of {verdict['table']!r}: {verdict['entries']} entries, {verdict['debits']} debits"]
    if verdict["cap_units"] is not None:
        lines.append(
            f"budget: epsilon {verdict['epsilon']}, delta {verdict['delta']}; spent "
            f"{verdict['spent_units'] / UNITS:.15g} of {verdict['cap_units'] / UNITS:.15g} {verdict['currency']}"
        )
    lines.append(f"answers checked against their hashes: {verdict['answers_checked']}")
    lines.append(f"last hash: {verdict['head']}")
    lines += [f"WRONG  {problem}" for problem in verdict["problems"]]
    lines.append("NOT SOUND" if verdict["problems"] else "SOUND: every price, sum, link and bound is right")
    return "\n".join(lines), 1 if verdict["problems"] else 0
