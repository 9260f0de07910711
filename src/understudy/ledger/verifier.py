"""Check an Understudy ledger with nothing but Python: this file imports the standard library only.

It shares no code with the program that wrote the ledger. Every price is worked out again, in exact fractions, from
the recorded event; every hash, number, sum, link and bound is checked.

    Laplace noise of scale b on values that one person moves by l1       epsilon = l1/b      rho = epsilon^2/2
    Gaussian noise of variance v on values moved by sqrt(l2_squared)     no epsilon          rho = l2_squared/(2v)
    one selection by the exponential mechanism                           epsilon             rho = epsilon^2/8
    a noisy maximum; a sparse vector; reports; what was spent before     epsilon             rho = epsilon^2/2
    several events                                                       sum                 sum

Noise on counts that only the rows of a region can move ("Located") is priced jointly. With p the price of the
noise and f the indicator of the region, two neighbouring tables that differ in the rows x and y lose at most u
(phi(x) + phi(y)): u = p and phi = f or 1/2 for one count under `replace`; u = p/2 and phi = f for several; u =
p/F and phi = f under `add-remove m`. All together so cost at most F max (sum of u phi), F = 2 under `replace`,
else m (Laplace) or m^2 (Gaussian). The maximum is bounded by message passing: for any messages msg_Ca from a
table T_C to its attributes a, with b_a their sum, it is at most  c + sum_a max b_a + sum_C max(T_C - sum_a
msg_Ca).  The program makes its sweeps by a fixed rule, which is repeated here in whole numbers; thousands of
them take minutes.

Only events of one relation, which also names the version of the table and of its declaration, are priced together.

Prices are whole numbers of 10^-15, rounded up. A budget (epsilon, delta) is kept as a cap on rho: rho-zCDP implies
delta = exp((a-1)(a rho - epsilon)) (1-1/a)^a / (a-1) for every order a > 1.
"""

# pyright: standard
# Not strict: it reads a document that may hold anything, and finds out by trying.

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from fractions import Fraction
from typing import Any

FIELDS = (
    "number", "kind", "at", "request", "question", "analyst", "event", "cost", "total", "debit", "step", "answer",
    "state", "terms", "previous", "hash",
)  # fmt: skip
UNITS = 10**15
LIMIT = 1 << 63
RATIONAL = re.compile(r"[0-9]{1,4000}(/0*[1-9][0-9]{0,3999})?")
WHEN = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z")
HASH = re.compile(r"[0-9a-f]{64}")
RELATION = re.compile(r"(replace|add-remove (?P<rows>[1-9][0-9]{0,99}))( @[0-9a-f]+)?", re.ASCII)
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
        "entries": len(check.entries),
        "debits": len(check.requests),
        "answers_checked": check.answers_checked,
        "steps_checked": check.steps_checked,
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
        self.document = document if isinstance(document, dict) else {}
        self.problems: list[str] = []
        self.entries = self.part("entries", list, [])
        self.head = self.part("head", dict, {})
        self.answers = self.part("answers", dict, None)
        self.terms: dict = {}
        self.previous = "0" * 64
        self.at = ""
        self.total = 0
        self.purse = Purse("", 0)
        self.requests: set[str] = set()
        self.open_debits: dict[int, tuple[int, bool] | None] = {}
        self.answers_checked = self.steps_checked = 0
        self.answer_numbers: set[str] = set()

    def part(self, name: str, kind: type, missing: object) -> Any:
        """A part of the document that has its type, or what stands for one that is not there."""
        found = self.document.get(name)
        if isinstance(found, kind):
            return found
        if found is not None:
            self.problems.append(f"the document's {name} are not understood")
        return missing

    def run(self) -> None:
        for place, entry in enumerate(self.entries, start=1):
            try:
                self.shape(entry)
                self.link(entry, place)
                getattr(self, "check_" + entry["kind"])(entry)
            except Wrong as wrong:
                self.problems.append(f"entry {place}: {wrong}")
            except (
                KeyError,
                ValueError,
                TypeError,
                AttributeError,
                ArithmeticError,
                RecursionError,
            ) as error:
                self.problems.append(f"entry {place}: it cannot be understood ({type(error).__name__})")
            self.go_on(entry)
        if (self.head.get("entries"), self.head.get("hash")) != (len(self.entries), self.previous):
            self.problems.append("the end: the ledger's head is another entry than the last one here")
        if not self.entries:
            self.problems.append("the ledger has no entries")
        for number in (self.answers or {}).keys() - self.answer_numbers:
            self.problems.append(f"an answer is kept for entry {number}, which is none")

    def go_on(self, entry: object) -> None:
        """Continue from what the entry says, so that one change is reported once and not at every later entry."""
        if isinstance(entry, dict):
            self.previous = str(entry.get("hash"))
            self.at = str(entry.get("at"))
            if type(entry.get("total")) is int and 0 <= entry["total"] < LIMIT:
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
            if type(entry[name]) is not int or not 0 <= entry[name] < LIMIT:
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
        if type(terms["cap"]) is not int or not 0 <= terms["cap"] < LIMIT:
            raise Wrong("its cap is not a whole number")
        self.terms = terms
        if terms["table"] != self.document.get("table"):
            raise Wrong("it is the ledger of another table")
        check_cap(terms)
        self.purse = Purse(terms["currency"], terms["cap"])
        self.pay(entry)

    def check_debit(self, entry: dict) -> None:
        if entry["request"] in self.requests or not entry["request"]:
            raise Wrong("its request id was charged before, or is empty")
        self.requests.add(entry["request"])
        self.open_debits[entry["number"]] = None
        self.pay(entry)

    def pay(self, entry: dict) -> None:
        cost = self.purse.pay(json.loads(entry["event"]))
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
        self.answer_numbers.add(str(entry["number"]))
        if self.answers is None:
            return
        kept = self.answers.get(str(entry["number"]))
        if kept is None:
            raise Wrong("its answer is missing")
        if hashlib.sha256(base64.b64decode(kept, validate=True)).hexdigest() != entry["answer"]:
            raise Wrong("its answer is not the one that was given")
        self.answers_checked += 1
        self.steps_checked += entry["kind"] == "step"


def entry_hash(entry: dict) -> str:
    """SHA-256 of the entry without its hash, as JSON with sorted keys and no spaces."""
    fields = {name: value for name, value in entry.items() if name != "hash"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"understudy entry 1\n" + text.encode("ascii")).hexdigest()


def rational(text: object) -> Fraction:
    """A number of an event: digits, or two such with a stroke. An exponent could stand for one that never ends."""
    if not isinstance(text, str) or not RATIONAL.fullmatch(text):
        raise Wrong("its event has a negative number, or none at all")
    return Fraction(text)


def price(event: dict, currency: str) -> Fraction:
    """What an event costs: epsilon or rho, exactly."""
    kind = event["event"]
    if kind == "Together":
        return sum((price(part, currency) for part in event["events"]), Fraction(0))
    if kind == "Located":
        return price(event["noise"], currency)
    numbers = {name: rational(text) for name, text in event.items() if name != "event"}
    pure = currency == "epsilon"
    if kind == "LaplaceNoise" and set(numbers) == {"l1", "scale"}:
        epsilon = numbers["l1"] / numbers["scale"]
        return epsilon if pure else epsilon * epsilon / 2
    if kind == "GaussianNoise" and set(numbers) == {"l2_squared", "variance"}:
        if pure and numbers["l2_squared"]:
            raise Wrong("Gaussian noise has no price in epsilon")
        return numbers["l2_squared"] / (2 * numbers["variance"])
    if kind == "SparseVector" and {"epsilon"} <= set(numbers) <= {"epsilon", "hits", "told"}:
        return sparse_vector(numbers["epsilon"], numbers.get("hits"), numbers.get("told"), pure=pure)
    if set(numbers) != {"epsilon"}:
        raise Wrong("its event is not understood")
    epsilon = numbers["epsilon"]
    if kind == "Selection":
        return epsilon if pure else epsilon * epsilon / 8
    if kind in ("NoisyMaximum", "RandomizedReport", "SpentBefore"):
        return epsilon if pure else epsilon * epsilon / 2
    raise Wrong("its event is not known to this verifier")


def sparse_vector(epsilon: Fraction, hits: Fraction | None, told: Fraction | None, *, pure: bool) -> Fraction:
    """Runs, each with its share of epsilon, and of that a part for telling a value: their prices in rho add up.

    Without a number of runs it is one, which costs what every such event did when none was recorded.
    """
    runs, part = 1 if hits is None else hits, told or Fraction(0)
    if runs < 1 or Fraction(runs).denominator != 1 or part > 1:
        raise Wrong("its event is not understood")
    if pure:
        return epsilon
    share = epsilon / runs
    return runs * ((share - part * share) ** 2 + (part * share) ** 2) / 2


class Purse:
    """What the events so far cost: located ones jointly, all others by their sum."""

    def __init__(self, currency: str, cap: int) -> None:
        self.currency, self.cap = currency, cap
        self.others = self.flat = self.constant = self.shown = self.swept = 0
        self.relation, self.factor = "", 0
        self.blocks: dict[tuple, Block] = {}
        self.beliefs: dict[tuple, list[int]] = {}

    def pay(self, event: dict) -> int:
        """Take an event in; the units by which the total grows."""
        before = self.others + self.shown
        self.take(event)
        return self.others + self.shown - before

    def take(self, event: dict) -> None:
        parts = event["events"] if event["event"] == "Together" else []
        if any(part["event"] == "Located" for part in parts):
            for part in parts:
                self.take(part)
            return
        cost = math.ceil(price(event, self.currency) * UNITS)
        if event["event"] == "Located" and self.joins(event, cost):
            self.add(event, cost)
            self.settle()
        else:
            self.others += cost

    def joins(self, event: dict, cost: int) -> bool:
        noise = "LaplaceNoise" if self.currency == "epsilon" else "GaussianNoise"
        return event["noise"]["event"] == noise and self.flat + cost <= 1 << 60

    def add(self, event: dict, cost: int) -> None:
        known = RELATION.fullmatch(event["relation"])
        if known is None:
            raise Wrong("its neighbour relation is not known")
        if self.relation != event["relation"]:  # other rows: what was shown is paid
            self.others, self.flat, self.constant, self.shown, self.swept = (
                self.others + self.shown,
                0,
                0,
                0,
                0,
            )
            self.blocks, self.beliefs = {}, {}
        power = 1 if self.currency == "epsilon" else 2
        self.relation, self.factor = event["relation"], int(known["rows"]) ** power if known["rows"] else 2
        self.flat += cost
        single = known["rows"] is None and event["split"] is False
        weight = cost if single else -(-cost // self.factor)
        spans = {(name, size): cells(size, int(mask, 16)) for name, size, mask in event["region"]}
        narrow = sorted(spans, key=lambda at: (Fraction(len(spans[at]), at[1]), at[0]))[:3]
        spans = {at: inside for at, inside in spans.items() if at in narrow}
        share = math.prod(Fraction(len(inside), size) for (_, size), inside in spans.items())
        home = None if single and share > Fraction(3, 10) else self.home(tuple(spans))
        if home is None:
            self.constant += -(-weight // 2) if single else weight
            return
        for attribute in home:
            self.beliefs.setdefault(attribute, [0] * attribute[1])
        self.blocks.setdefault(home, Block(home)).add(spans, weight)

    def home(self, clique: tuple) -> tuple | None:
        """The table that takes a region: its own, else a larger one that is there, else a new one if it fits."""
        if clique in self.blocks:
            return clique
        if len(clique) < 3:
            for known in self.blocks:
                if set(clique) < set(known):
                    return known
        size = math.prod(size for _, size in clique)
        room = size + sum(len(block.table) for block in self.blocks.values()) <= 1 << 24
        return clique if len(clique) <= 3 and size <= 1 << 20 and room else None

    def bound(self) -> int:
        most = self.constant + sum(block.largest for block in self.blocks.values())
        most += sum(max(belief) for belief in self.beliefs.values())
        return min(self.flat, self.factor * most)

    def settle(self) -> None:
        if self.bound() * 20 > self.swept * 21:
            self.sweep()
            self.sweep()
            self.swept = self.bound()
        for _ in range(8):
            if max(self.bound(), self.shown) + self.others <= self.cap or not self.blocks:
                break
            self.sweep()
        self.shown = max(self.bound(), self.shown)

    def sweep(self) -> None:
        for clique, block in self.blocks.items():
            block.sweep(clique, self.beliefs)


class Block:
    """The table of one clique of up to three attributes, with its messages and the maximum of what remains."""

    def __init__(self, clique: tuple) -> None:
        self.shape = [size for _, size in clique] + [1] * (3 - len(clique))
        self.table = [0] * math.prod(self.shape)
        self.messages = [[0] * size for size in self.shape]
        self.clique = clique
        self.largest = 0

    def add(self, spans: dict, weight: int) -> None:
        inside = [spans.get(attribute, range(attribute[1])) for attribute in self.clique]
        inside += [range(1)] * (3 - len(inside))
        _, second, third = self.shape
        one, two, three = self.messages
        for i in inside[0]:
            for j in inside[1]:
                base, start = one[i] + two[j], (i * second + j) * third
                for k in inside[2]:
                    self.table[start + k] += weight
                    self.largest = max(self.largest, self.table[start + k] - base - three[k])

    def sweep(self, clique: tuple, beliefs: dict) -> None:
        axes = len(clique)
        arriving = [[0] * size for size in self.shape]
        for axis, attribute in enumerate(clique):
            arriving[axis] = [b - m for b, m in zip(beliefs[attribute], self.messages[axis], strict=True)]
        whole = self.shifted(arriving, 1)
        new = [[most // axes for most in side] for side in self.maxima(whole)]
        new[axes:] = [[0]] * (3 - axes)
        for axis, attribute in enumerate(clique):
            beliefs[attribute] = new[axis]
            self.messages[axis] = [b - a for b, a in zip(new[axis], arriving[axis], strict=True)]
        self.largest = max(self.shifted(self.messages, -1))

    def shifted(self, sides: list, sign: int) -> list[int]:
        """The table plus (or minus) a vector along each axis."""
        one, two, three = ([sign * value for value in side] for side in sides)
        found, start, third = [], 0, self.shape[2]
        for a in one:
            for b in two:
                found += [
                    t + a + b + c for t, c in zip(self.table[start : start + third], three, strict=True)
                ]
                start += third
        return found

    def maxima(self, whole: list[int]) -> list[list[int]]:
        """The largest value of a table in each slice along each axis."""
        first, second, third = self.shape
        rows = [whole[i : i + third] for i in range(0, len(whole), third)]
        tops = [max(row) for row in rows]
        return [
            [max(tops[i * second : (i + 1) * second]) for i in range(first)],
            [max(tops[j::second]) for j in range(second)],
            [max(column) for column in zip(*rows, strict=True)],
        ]


def cells(size: int, mask: int) -> list[int]:
    """The cells of a span."""
    if type(size) is not int or mask <= 0 or mask.bit_length() > size:
        raise Wrong("its region is not understood")
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def check_cap(terms: dict) -> None:
    """The cap must follow from the budget."""
    epsilon, delta, cap = rational(terms["epsilon"]), rational(terms["delta"]), terms["cap"]
    if epsilon <= 0 or not 0 <= delta < 1:
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
    lines.append(
        f"answers checked against their hashes: {verdict['answers_checked']}, of which steps of handles "
        f"{verdict['steps_checked']}"
    )
    lines.append(f"last hash: {verdict['head']}")
    lines += [f"WRONG  {problem}" for problem in verdict["problems"]]
    lines.append("NOT SOUND" if verdict["problems"] else "SOUND: every price, sum, link and bound is right")
    return "\n".join(lines), 1 if verdict["problems"] else 0
