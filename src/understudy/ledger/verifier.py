"""Check an Understudy ledger with nothing but Python: this file imports the standard library only.

It shares no code with the program that wrote the ledger. Every price is worked out again, in exact fractions, from
the recorded event; every hash, number, sum, link and bound is checked. It is one long file on purpose: an auditor
copies it to a machine where Understudy was never installed, reads it from the first line to the last, and runs it.

    Laplace noise of scale b on values that one person moves by l1       epsilon = l1/b      rho = epsilon^2/2
    Gaussian noise of variance v on values moved by sqrt(l2_squared)     no epsilon          rho = l2_squared/(2v)
    the same, normal noise that was rounded to whole numbers             no epsilon          rho = l2_squared/(2v)
    one selection by the exponential mechanism                           epsilon             rho = epsilon^2/8
    a noisy maximum; a sparse vector; reports; what was spent before     epsilon             rho = epsilon^2/2
    several events                                                       sum                 sum
    keys told by noise on -k..k with P[x] ~ exp(-|x| e), c of them moved  no epsilon          rho = c e^2/2
    keys told by Gaussian noise of variance v, moved by sqrt(l2_squared)  no epsilon          rho = l2_squared/(2v)
    noise that is bounded by a reach                                     no epsilon          no rho

These are the prices in epsilon and in rho of zCDP. A ledger whose terms name a filter counts rho otherwise;
normal noise on values that are moved by sqrt(l2_squared) costs l2_squared/(2v) in all of them.

filter `renyi`, of an order a: rho = D/a, D the Renyi divergence of order a, ln(sum of P^a Q^(1-a))/(a-1)
    epsilon e         ln((exp(a e) + exp(-(a-1) e))/(1 + exp(e)))/(a-1): randomised response is the worst
    one selection     the largest over losses t and t - e: with A = exp(e) - exp(-(a-1)e), B = 1 - exp(-(a-1)e),
                      the logarithm of ((a-1)A/(aB))^(a-1) A/(a (exp(e) - 1)), over a-1
filter `gdp`, with a reserve of r (in mu^2) that is never spent: rho = mu^2/2, and mu^2 is
    epsilon e         c with erf(sqrt((r+c)/8)) = p erf((e/s + s/2)/sqrt 2) - (1-p) erf((e/s - s/2)/sqrt 2),
                      s = sqrt r, p = 1/(1 + exp(-e)); 8e from e = 20 on
    one selection     D + D^2/4r for h = e/2, D = M exp((E + E^2/4r)/8), E = M (1 + h^2/4), where M =
                      2 (h sqrt(pi r/2) erf(h/sqrt(2r)) - r (1 - exp(-h^2/2r))), or h^2 if 10^6 h^2 < r; this if
                      h <= 1/2 and h^2 <= 1000 r, and never more than its epsilon costs
    discrete noise    m = l2_squared/v and 3 t C (r+m), with t = exp(l2_squared 2q/(1-q)) - 1, C = 1 +
                      sqrt(2 pi (r+m)) exp((r+m)/2), q = exp(-2 pi^2 v/(1 + m/r)), where 6 t C <= 1 and r+m <= 3;
                      but m where 3 t C (r+m) v <= 10^-15, and only then it is priced jointly; for what m lacks
                      then, the cap is smaller by 10^-15 of itself

Keys also have a delta of their own: at least c P[noise = k], and keys P[noise >= reach], which is at most keys
erfc((reach - 1)/sqrt(2v))/2. Bounded noise has one too, and a D at one order a, both of which its event records
(`bounded_sums`). All such deltas together stay under the budget's key_delta.

Noise on counts that only the rows of a region can move ("Located") is priced jointly. With p the price of the
noise and f the indicator of the region, two neighbouring tables that differ in the rows x and y lose at most u
(phi(x) + phi(y)): u = p and phi = f, 1/2 or a mean of both for one count under `replace`; u = p/2 and phi = f
for several; u = p/F and phi = f under `add-remove m`. All together so cost at most F max (sum of u phi), F = 2
under `replace`, else m (Laplace) or m^2 (Gaussian). The maximum is bounded by message passing: for any messages
msg_Ca from a table T_C to its attributes a, with b_a their sum, it is at most c + sum_a max b_a + sum_C max(T_C
- sum_a msg_Ca). The program makes its sweeps by a fixed rule, which is repeated here in whole numbers. Cells
that no event has told apart are taken together, which changes no maximum. Ledgers whose terms name accounting 2
to 5 bound the work: tables and sweeps are paid from a credit that grows with the number of events, and what it
cannot pay for is not done; the region of an event is then taken larger, or as everybody. Under accounting 4
every second sweep chooses again which mean of f and 1/2 a count is taken by: (w/p) f + (1 - w/p)/2, with the w
from 0 to p at which the largest sum inside its region is that outside. Under accounting 5 every sweep does, and
maxima are soft: m + t ln(sum of exp((v - m)/t)), with exp and ln read from tables of whole numbers. Which messages
and which w are taken is the program's choice, and no bound is wrong for it. A snapshot holds the hash of all this,
and of what each analyst, the latest day and the latest month were charged.

Only events of one relation, which also names the version of the table and of its declaration, are priced together.

Prices are whole numbers of 10^-15, rounded up. A budget (epsilon, delta) is kept as a cap on rho, and the part
key_delta of delta, where there is one, as a cap on the events' own deltas. For the rest of delta, rho-zCDP implies
delta = exp((a-1)(a rho - epsilon)) (1-1/a)^a / (a-1) for every order a > 1; a filter `renyi` takes this at its one
order; and mu-GDP implies delta = P[Z > epsilon/mu - mu/2] - exp(epsilon) P[Z > epsilon/mu + mu/2], Z normal.
"""

# pyright: standard
# Not strict: it reads a document that may hold anything, and finds out by trying.

from __future__ import annotations

import base64
import decimal
import hashlib
import json
import math
import re
import sys
from array import array
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import compress
from operator import add, itemgetter, neg, sub
from typing import Any

FIELDS = (
    "number", "kind", "at", "request", "question", "analyst", "event", "cost", "total", "debit", "step", "answer",
    "state", "terms", "previous", "hash",
)  # fmt: skip
UNITS = 10**15
DELTA_UNITS = 10**30
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
    "snapshot": {"terms"},
}
OPTIONAL = {"state"}
FILTER_TERMS = {
    "renyi": ("filter", "order"),
    "gdp": ("filter", "reserve", "reserve_units", "total_units"),
}
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534")
Kept = str | tuple[str, Fraction]
STARTS = {
    2: 1 << 25,
    3: 1 << 26,
    4: 1 << 28,
    5: 3 << 28,
}  # by rule: the credit of work before the first event,
ONCE = {2: 1 << 20, 3: 1 << 20, 4: 1 << 21, 5: 1 << 21}  # the work of the sweeps for one event,
SWEEPS = {1: 2, 2: 2, 3: 2, 4: 4, 5: 16}  # how many there are, at most, when the bound has grown,
FEWEST = {5: 4}  # and at least, where they fall as the credit does,
GROWTH = {1: (21, 20), 2: (21, 20), 3: (21, 20), 4: (21, 20), 5: (51, 50)}  # by more than this,
DIVIDED = {1: 0, 2: 0, 3: 0, 4: 3 << 11, 5: 1 << 18}  # and the work of dividing the counts of one table
BESIDE = {4: 3, 5: 3}  # another rule by which events are added up as well: the smaller total counts
SOFT = {1: 0, 2: 0, 3: 0, 4: 0, 5: 15}  # 0, or maxima are soft, at a temperature of about 2^-15 of the bound
CAPPED = {1: False, 2: False, 3: False, 4: False, 5: True}  # whether no event costs more than by itself
WHOLE = {
    1: False,
    2: False,
    3: False,
    4: False,
    5: True,
}  # whether ONCE is for all parts of an event together
COUNT = 32  # what a count that is divided anew counts beside the numbers of its table
QUICK = 4  # by how much less this counts, with the classes of the table, where counts go by their regions (rule 5)
GRANT = 3 << 8  # what each event adds to the credit
ROOM, BLOCK, OVERHEAD = (
    1 << 19,
    1 << 16,
    1 << 8,
)  # all tables, one table, and what each counts beside its numbers
CELLS, WIDTH = 1 << 16, 1 << 12  # cells of an attribute that a region is taken by; parts that it is cut into
STEPS, REACH = (
    16,
    176,
)  # steps of a soft maximum in its temperature, and how many are looked at below and above
POWERS = [round((1 << 16) * math.exp(-step / STEPS)) for step in range(-REACH, REACH)]
LOGS = [round(256 * math.log(1 + (part + 0.5) / 64)) for part in range(64)]
DOUBLINGS = [round(256 * math.log(2) * power) for power in range(63)]
RISEN = [number - DOUBLINGS[16] for number in DOUBLINGS]  # by a power of two of masses, which are in 2^-16
LEAST_MASS = 64
RISES = [  # by how much the soft maximum of one value is off, for each of its steps below and above the peak
    LOGS[(mass << 6 >> mass.bit_length() - 1) - 64] + RISEN[mass.bit_length() - 1]
    for mass in POWERS
    if mass >= LEAST_MASS
]
FAR = len(RISES) - REACH  # from so many steps on it is the value
BITS = bytes.maketrans(b"01", b"\0\1")
SWAPPED = bytes.maketrans(b"\0\1", b"\1\0")


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
        "filter": check.terms.get("filter", "zcdp" if check.terms.get("currency") == "rho" else None),
        "spent_units": check.total,
        "promise": check.terms.get("promise", ""),
        "cap_units": check.terms.get("cap"),
        "epsilon": check.terms.get("epsilon"),
        "delta": check.terms.get("delta"),
        **(
            {"key_delta": check.terms["key_delta"], "key_delta_spent": check.delta / DELTA_UNITS}
            if "key_delta" in check.terms
            else {}
        ),
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
        self.delta = 0
        self.purse = Purse("", 0)
        self.shares = SnapshotTotals()
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
        if sorted(
            set(terms) - {"accounting", "key_delta", "promise", *FILTER_TERMS.get(terms.get("filter"), ())}
        ) != sorted(("format", "table", "epsilon", "delta", "currency", "cap")):
            raise Wrong("its terms are not understood")
        rule = terms.get("accounting", 1)
        if "accounting" in terms and (type(rule) is not int or rule not in STARTS):
            raise Wrong("its rule of accounting is not known to this verifier")
        if type(terms.get("promise", "")) is not str:
            raise Wrong("it does not say in words what was promised")
        if terms["format"] != 1:
            raise Wrong("its format is not known to this verifier")
        if type(terms["cap"]) is not int or not 0 <= terms["cap"] < LIMIT:
            raise Wrong("its cap is not a whole number")
        self.terms = terms
        if terms["table"] != self.document.get("table"):
            raise Wrong("it is the ledger of another table")
        check_cap(terms)
        self.purse = Purse(kept_by(terms), terms["cap"], rule)
        self.pay(entry)

    def check_debit(self, entry: dict) -> None:
        if entry["request"] in self.requests or not entry["request"]:
            raise Wrong("its request id was charged before, or is empty")
        self.requests.add(entry["request"])
        self.open_debits[entry["number"]] = None
        event = json.loads(entry["event"])
        self.pay(entry)
        self.shares.enter(entry, units(event, self.purse.currency) or math.ceil(delta(event) * DELTA_UNITS))

    def check_snapshot(self, entry: dict) -> None:
        if entry["cost"] != 0 or entry["total"] != self.total:
            raise Wrong("a snapshot costs nothing, and the sum is wrong")
        plain, numbers = self.purse.encoded()
        whole = {**self.shares.encoded(), "joint": plain, **({"delta": self.delta} if self.delta else {})}
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        books = b"understudy books 1\n" + text.encode("ascii") + b"\n" + numbers
        if json.loads(entry["terms"]) != {"books": hashlib.sha256(books).hexdigest()}:
            raise Wrong("its books are not those that follow from the entries before it")

    def pay(self, entry: dict) -> None:
        cost = self.purse.pay(json.loads(entry["event"]))
        if entry["cost"] != cost:
            raise Wrong(f"it was charged {entry['cost']} units; its event costs {cost}")
        if entry["total"] != self.total + cost:
            raise Wrong("the sum is wrong")
        if entry["total"] > self.terms["cap"]:
            raise Wrong("the budget is overspent")
        self.delta += math.ceil(delta(json.loads(entry["event"])) * DELTA_UNITS)
        if self.delta > rational(self.terms.get("key_delta", "0")) * DELTA_UNITS:
            raise Wrong("the budget's delta for keys is overspent")

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


def kept_by(terms: dict) -> Kept:
    """How a ledger counts: in epsilon or rho, or by a filter with its order, or with its reserve in mu^2."""
    name = terms.get("filter")
    if name == "renyi":
        return (name, rational(terms["order"]))
    return (name, Fraction(2 * terms["reserve_units"], UNITS)) if name == "gdp" else terms["currency"]


def filter_in(currency: Kept) -> tuple[str, Fraction]:
    """The filter's name, with its order or its reserve."""
    if isinstance(currency, str):
        raise Wrong("its currency is not known to this verifier")
    return currency


def units(event: dict, currency: Kept) -> int:
    """What an event costs on its own, in whole units, rounded up."""
    if event["event"] == "Together":
        return math.ceil(price(event, currency) * UNITS)
    noise = event["noise"] if event["event"] == "Located" else event
    return units_of(json.dumps(noise, sort_keys=True), currency)


@lru_cache(maxsize=4096)
def units_of(text: str, currency: Kept) -> int:
    """The same for the text of an event: many events have the same noise."""
    return math.ceil(price(json.loads(text), currency) * UNITS)


def price(event: dict, currency: Kept) -> Fraction:
    """What an event costs: epsilon or rho, exactly, or from above where it is no fraction."""
    kind = event["event"]
    if kind == "Together":
        return sum((price(part, currency) for part in event["events"]), Fraction(0))
    if kind == "Located":
        return price(event["noise"], currency)
    numbers = {name: rational(text) for name, text in event.items() if name != "event"}
    pure = currency == "epsilon"
    if kind == "LaplaceNoise" and set(numbers) == {"l1", "scale"}:
        return of_epsilon(numbers["l1"] / numbers["scale"], currency)
    if kind in ("GaussianNoise", "RoundedNormal") and set(numbers) == {"l2_squared", "variance"}:
        if pure and numbers["l2_squared"]:
            raise Wrong("Gaussian noise has no price in epsilon")
        return of_normal(numbers, currency, discrete=kind == "GaussianNoise")
    if kind == "BoundedNoise":
        return bounded_noise(numbers, currency)
    if kind == "SparseVector" and {"epsilon"} <= set(numbers) <= {"epsilon", "hits", "told"}:
        return sparse_vector(numbers["epsilon"], numbers.get("hits"), numbers.get("told"), currency)
    if kind in ("TruncatedGeometricKeys", "GaussianKeys"):
        if pure:
            raise Wrong("a selection of keys has no price in epsilon")
        return key_selection(kind, numbers, currency)
    if set(numbers) != {"epsilon"}:
        raise Wrong("its event is not understood")
    epsilon = numbers["epsilon"]
    if kind == "Selection":
        return of_selection(epsilon, currency)
    if kind in ("NoisyMaximum", "RandomizedReport", "SpentBefore"):
        return of_epsilon(epsilon, currency)
    raise Wrong("its event is not known to this verifier")


def of_epsilon(epsilon: Fraction, currency: Kept) -> Fraction:
    """The price of anything that is known by its epsilon alone."""
    if currency == "epsilon" or epsilon == 0:
        return epsilon
    if currency == "rho":
        return epsilon * epsilon / 2
    name, parameter = filter_in(currency)
    if name == "gdp":
        return gdp_of_epsilon(epsilon, parameter) / 2
    with decimal.localcontext(wide(100)):
        a, e = exactly(parameter), exactly(epsilon)
        mean = ((a * e).exp() + ((1 - a) * e).exp()) / (1 + e.exp())
        return min(above(mean.ln() / (a - 1)), parameter * epsilon**2 / 2, epsilon) / parameter


def of_selection(epsilon: Fraction, currency: Kept) -> Fraction:
    """The price of one run of the exponential mechanism."""
    if currency == "epsilon" or epsilon == 0:
        return epsilon
    if currency == "rho":
        return epsilon * epsilon / 8
    name, parameter = filter_in(currency)
    if name == "gdp":
        return gdp_of_selection(epsilon, parameter) / 2
    with decimal.localcontext(wide(100)):
        a, e = exactly(parameter), exactly(epsilon)
        small = ((1 - a) * e).exp()
        most, least = e.exp() - small, 1 - small
        log_mean = (a - 1) * ((a - 1) * most / (a * least)).ln() + (most / (a * (e.exp() - 1))).ln()
        return min(above(log_mean / (a - 1)), parameter * epsilon**2 / 8, epsilon) / parameter


def of_normal(numbers: dict, currency: Kept, *, discrete: bool) -> Fraction:
    """The price of noise that is normal, or discrete Gaussian: only a filter `gdp` tells them apart."""
    moved, variance = Fraction(numbers["l2_squared"]), Fraction(numbers["variance"])
    rho = moved / (2 * variance)
    if not discrete or rho == 0 or isinstance(currency, str) or currency[0] != "gdp":
        return rho
    extra = lattice_surcharge(moved, variance, currency[1])
    if extra is None:
        raise Wrong("discrete Gaussian noise of so small a variance has no price in GDP")
    plain = extra * variance * 10**15 <= 1
    return rho if plain else rho + extra / 2


def wide(digits: int) -> decimal.Context:
    """Arithmetic of so many digits, without bounds on exponents."""
    return decimal.Context(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def exactly(number: Fraction) -> Decimal:
    """A fraction, to the digits of the context."""
    return Decimal(number.numerator) / Decimal(number.denominator)


def above(number: Decimal) -> Fraction:
    """The least multiple of 10^-30 above a number, which is known to many more digits."""
    return Fraction(math.floor(Fraction(number) * 10**30) + 1, 10**30)


def error_function(x: Decimal) -> Decimal:
    """erf(x) by its power series; its terms alternate, so that digits are added for those that cancel."""
    if x < 0:
        return -error_function(-x)
    if x > 13:
        return Decimal(1)
    with decimal.localcontext(wide(85 + int(x * x))):
        total, power, n = Decimal(0), x, 0
        while n < x * x or abs(power) > Decimal(10) ** -90:
            total += power / (2 * n + 1)
            n += 1
            power = -power * x * x / n
        return 2 * total / PI.sqrt()


@lru_cache(maxsize=4096)
def gdp_of_epsilon(epsilon: Fraction, reserve: Fraction) -> Fraction:
    """The mu^2 that an event of that epsilon takes: total variations are made equal."""
    if epsilon >= 20:
        return 8 * epsilon
    with decimal.localcontext(wide(80)):
        e, r = exactly(epsilon), exactly(reserve)
        s, root = r.sqrt(), Decimal(2).sqrt()
        p = 1 / (1 + (-e).exp())
        wanted = p * error_function((e / s + s / 2) / root) - (1 - p) * error_function((e / s - s / 2) / root)
        low, high = r, r + 2 * e * e  # pi/2 times the square of epsilon is the most
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if error_function((middle / 8).sqrt()) < wanted else (low, middle)
        x = ((low + high) / 16).sqrt()
        for _ in range(12):  # Newton's steps double the digits
            x += (wanted - error_function(x)) * PI.sqrt() / 2 * (x * x).exp()
        return above(8 * x * x - r) + Fraction(1, 10**30)


@lru_cache(maxsize=4096)
def gdp_of_selection(epsilon: Fraction, reserve: Fraction) -> Fraction:
    """The mu^2 that one selection takes."""
    whole = gdp_of_epsilon(epsilon, reserve)
    square = epsilon * epsilon / 4
    if epsilon > 1 or square > 1000 * reserve:
        return whole
    with decimal.localcontext(wide(80)):
        h, hh, r = exactly(epsilon) / 2, exactly(square), exactly(reserve)
        middle = hh
        if 10**6 * square >= reserve:
            bell = h * (PI * r / 2).sqrt() * error_function(h / (2 * r).sqrt())
            middle = 2 * bell - 2 * r * (1 - (-hh / (2 * r)).exp())
        first = middle * (1 + hh / 4)
        second = middle * ((first + first * first / (4 * r)) / 8).exp()
        return min(above(second + second * second / (4 * r)) + Fraction(1, 10**30), whole)


@lru_cache(maxsize=4096)
def lattice_surcharge(moved: Fraction, variance: Fraction, reserve: Fraction) -> Fraction | None:
    """What discrete Gaussian noise takes beyond normal noise; None where nothing is known."""
    m = moved / variance
    with decimal.localcontext(wide(80)):
        exponent = 2 * PI * PI * exactly(variance) / (1 + exactly(m / reserve))
        if exponent > 10_000 + reserve + m:
            return Fraction(0)
        if exponent < 1:
            return None
        q = (-exponent).exp()
        power = exactly(moved) * 2 * q / (1 - q)
        if power > 1:
            return None
        t = power.exp() - 1 if power > Decimal(10) ** -20 else 2 * power
        s = exactly(reserve + m)
        c = 1 + (2 * PI * s).sqrt() * (s / 2).exp()
        return None if 6 * t * c > 1 or 2 * t * c * s > 1 else above(3 * t * c * s) + Fraction(1, 10**30)


def key_selection(kind: str, numbers: dict, currency: Kept = "rho") -> Fraction:
    """The rho of a selection of keys, if its delta is as large as its noise makes it."""
    keys, reach, own = numbers["keys"], numbers["reach"], numbers["delta"]
    whole = keys >= 1 and reach >= 1 and keys.denominator == reach.denominator == 1
    if not whole or not 0 < own < 1:
        raise Wrong("its event is not understood")
    if kind == "TruncatedGeometricKeys" and set(numbers) == {"epsilon", "keys", "reach", "delta"}:
        rate, k = float(numbers["epsilon"]), int(reach)
        # The end of the noise over all of it: exp(-rate k) / (1 + 2 sum of exp(-rate x)), a geometric series.
        series = math.exp(-rate) * math.expm1(-rate * k) / math.expm1(-rate)
        least = keys * Fraction(math.exp(-rate * k) / (1 + 2 * series))
        rho = keys * of_epsilon(numbers["epsilon"], currency)
    elif kind == "GaussianKeys" and set(numbers) == {"l2_squared", "variance", "keys", "reach", "delta"}:
        least = keys * Fraction(math.erfc(float(reach - 1) / math.sqrt(2 * numbers["variance"])) / 2)
        rho = of_normal(numbers, currency, discrete=True)
    else:
        raise Wrong("its event is not understood")
    if own < least or rho <= 0:
        raise Wrong("its delta is smaller than the tail of its noise")
    return rho


def bounded_noise(numbers: dict, currency: Kept) -> Fraction:
    """The recorded divergence of bounded noise over its order, if that and its delta cover its noise.

    Only a ledger of that order has a price for it, unless nobody can move the values.
    """
    whole = ("reach", "l1", "largest", "set_aside")
    if set(numbers) != {*whole, "order", "divergence", "delta"}:
        raise Wrong("its event is not understood")
    reach, total, largest, aside = (int(numbers[name]) for name in whole)
    if any(numbers[name].denominator != 1 for name in whole):
        raise Wrong("its event is not understood")
    if not (1 <= reach <= 1 << 17 and 1 <= largest <= min(max(total, 1), 64) and largest <= aside <= reach):
        raise Wrong("its event is not understood")
    if not 1 < numbers["order"] <= 10**6 or not numbers["delta"] < 1 or reach * largest > 1 << 20:
        raise Wrong("its event is not understood")
    least, mass = (total * most for most in bounded_sums(reach, largest, aside, numbers["order"]))
    if not (float(numbers["divergence"]) >= least and float(numbers["delta"]) >= mass):
        raise Wrong("its price is smaller than its noise makes it")
    if total == 0:
        return Fraction(0)
    if currency != ("renyi", numbers["order"]):
        raise Wrong("bounded noise has a price at its own Renyi order alone")
    return numbers["divergence"] / numbers["order"]


@lru_cache(maxsize=256)
def bounded_sums(reach: int, largest: int, aside: int, order: Fraction) -> tuple[float, float]:
    """For each step that one person moves a number: the divergence outside the outcomes set aside, and their mass.

    Outcome k = 1, 2, ... from an end has the weight sin(t k)^3.5, t = pi/(2 reach + 2). Where the number moves
    by s, the log-ratio of the two laws is -3.5 ln(cos(t s) - sin(t s)/tan(t k)), and for s of `largest` steps
    the part s/largest of the outcomes is set aside, rounded up. Floats err by less than the last factor of the
    results.
    """
    turn, excess = math.pi / (2 * reach + 2), float(order) - 1
    weights = [math.sin(turn * min(k, 2 * reach + 2 - k)) ** 3.5 for k in range(1, 2 * reach + 2)]
    whole = math.fsum(weights)
    divergence = mass = 0.0
    for moved in range(1, largest + 1):
        first = -(-aside * moved // largest)
        sine, less = math.sin(turn * moved), 2 * math.sin(turn * moved / 2) ** 2
        grown = []
        for k in range(first + 1, 2 * reach + 2):
            cotangent = math.tan(turn * (reach + 1 - k))
            loss = -3.5 * math.log1p(-less - sine * cotangent)
            grown.append(weights[k - 1] * math.expm1(min(excess * loss, 700.0)))
        set_aside = math.fsum(weights[:first])
        mean = (math.fsum(grown) - set_aside) / whole  # less 1
        divergence = max(divergence, math.log1p(max(mean, 0.0)) / excess / moved)
        mass = max(mass, set_aside / whole / moved)
    return divergence * (1 - 1e-8), mass * (1 - 1e-8)


def delta(event: dict) -> Fraction:
    """The delta that an event has of its own: 0 for all but the selections of keys and bounded noise."""
    if event["event"] == "Together":
        return sum((delta(part) for part in event["events"]), Fraction(0))
    if event["event"] == "Located":
        return delta(event["noise"])
    own = event["event"] in ("TruncatedGeometricKeys", "GaussianKeys", "BoundedNoise")
    return rational(event["delta"]) if own else Fraction(0)


def sparse_vector(
    epsilon: Fraction, hits: Fraction | None, told: Fraction | None, currency: Kept
) -> Fraction:
    """Runs, each with its share of epsilon, and of that a part for telling a value: their prices in rho add up.

    Without a number of runs it is one, which costs what every such event did when none was recorded.
    """
    runs, part = 1 if hits is None else hits, told or Fraction(0)
    if runs < 1 or Fraction(runs).denominator != 1 or part > 1:
        raise Wrong("its event is not understood")
    if currency == "epsilon":
        return epsilon
    share = epsilon / runs
    return runs * (of_epsilon(share - part * share, currency) + of_epsilon(part * share, currency))


class SnapshotTotals:
    """What debits were charged, by analyst, day and month, and how many had no price: what snapshots hold."""

    def __init__(self) -> None:
        self.analysts: dict[str, int] = {}
        self.later = self.free = self.paid = 0
        self.day, self.month = ["", 0], ["", 0]

    def enter(self, entry: dict, price: int) -> None:
        """Count a debit whose event costs `price` on its own."""
        self.free, self.paid = self.free + (price == 0), self.paid + (price != 0)
        cost, name = entry["cost"], entry["analyst"]
        if cost == 0:
            return
        if name in self.analysts or len(self.analysts) < 4096:
            self.analysts[name] = self.analysts.get(name, 0) + cost
        else:
            self.later += cost
        day, month = entry["at"][:10], entry["at"][:7]
        self.day = [day, cost + (self.day[1] if self.day[0] == day else 0)]
        self.month = [month, cost + (self.month[1] if self.month[0] == month else 0)]

    def encoded(self) -> dict:
        return dict(vars(self))


class Purse:
    """What the events so far cost: located ones jointly, all others by their sum."""

    def __init__(self, currency: Kept, cap: int, rule: int = 1) -> None:
        self.currency, self.cap, self.rule = currency, cap, rule
        self.others = self.flat = self.constant = self.shown = self.swept = self.peaks = self.joined = (
            self.work
        ) = 0
        self.relation, self.factor = "", 0
        self.blocks: dict[tuple, Block] = {}
        self.beliefs: dict[tuple, list[int]] = {}
        self.rests = self.room = self.tables = self.dividing = 0
        self.beside = Purse(currency, cap, BESIDE[rule]) if rule in BESIDE else None

    def total(self) -> int:
        """What all events cost, by this rule or by the one beside it."""
        own = self.others + self.shown
        return own if self.beside is None else min(own, self.beside.total())

    def pay(self, event: dict) -> int:
        """Take an event in; the units by which the total grows."""
        before = self.total()
        self.take(event)
        return self.total() - before

    def take(self, event: dict, begun: list[int] | None = None) -> None:
        """`begun` is the work before the event that this is a part of, here and beside, if ONCE is for both."""
        parts = event["events"] if event["event"] == "Together" else []
        if any(part["event"] == "Located" for part in parts):
            if begun is None and WHOLE[self.rule]:
                begun = [self.work, self.beside.work if self.beside else 0]
            for part in parts:
                self.take(part, begun)
            return
        cost = units(event, self.currency)
        if event["event"] == "Located" and self.joins(event, cost):
            if CAPPED[self.rule]:
                self.shown = self.total() - self.others
            self.add(event, cost)
            most = self.shown + cost if CAPPED[self.rule] else self.flat
            before = begun[0] if begun else self.work
            self.settle(before)
            if self.beside is not None:
                self.beside.add(event, cost)
                self.beside.settle(begun[1] if begun else self.beside.work)
                self.beside.shown = self.beside.cost(self.beside.flat)
            self.squeeze(before, most)
            self.shown = self.cost(most)
        else:
            self.others += cost
            if self.beside is not None:
                self.beside.others += cost

    def joins(self, event: dict, cost: int) -> bool:
        noises = ("LaplaceNoise",) if self.currency == "epsilon" else ("GaussianNoise", "RoundedNormal")
        if self.currency[0] == "renyi":  # whoever moves the counts by a part costs at most that part of it
            noises += ("BoundedNoise",)
        return (
            event["noise"]["event"] in noises
            and self.flat + cost <= 1 << 60
            and self.is_plain(event["noise"])
        )

    def is_plain(self, noise: dict) -> bool:
        """Whether noise costs in proportion to how far values move: only in GDP some discrete noise does not."""
        if noise["event"] != "GaussianNoise" or isinstance(self.currency, str) or self.currency[0] != "gdp":
            return True
        moved, variance = rational(noise["l2_squared"]), rational(noise["variance"])
        extra = lattice_surcharge(moved, variance, self.currency[1]) if moved else Fraction(0)
        return extra is not None and extra * variance * 10**15 <= 1

    def can_pay(self, work: int) -> bool:
        """Whether the credit of the rule is enough for so much work; that of rule 1 always is."""
        return self.rule == 1 or work <= self.credit()

    def credit(self) -> int:
        """The work that may still be done."""
        return STARTS[self.rule] + GRANT * self.joined - self.work

    def add(self, event: dict, cost: int) -> None:
        known = RELATION.fullmatch(event["relation"])
        if known is None:
            raise Wrong("its neighbour relation is not known")
        if self.relation != event["relation"]:  # other rows: what was shown is paid
            self.others += self.shown
            self.flat = self.constant = self.shown = self.swept = self.peaks = 0
            self.rests = self.room = self.tables = self.dividing = 0
            self.blocks, self.beliefs = {}, {}
        power = 1 if self.currency == "epsilon" else 2
        self.relation, self.factor = event["relation"], int(known["rows"]) ** power if known["rows"] else 2
        self.flat += cost
        self.joined += 1
        single = known["rows"] is None and event["split"] is False
        weight = cost if single else -(-cost // self.factor)
        spans = {(name, size): mask_of(size, mask) for name, size, mask in event["region"]}
        if self.rule > 1:
            spans = {at: mask for at, mask in spans.items() if at[1] <= CELLS}
        if len(spans) > 3:
            narrow = sorted(spans, key=lambda at: (Fraction(spans[at].bit_count(), at[1]), at[0]))[:3]
            spans = {at: mask for at, mask in spans.items() if at in narrow}
        inner = math.prod(mask.bit_count() for mask in spans.values())
        wide = single and 10 * inner > 3 * math.prod(size for _, size in spans)
        home = None if wide or not spans else self.home(tuple(spans))
        if home is None or not self.raised(home, spans, weight, single=single):
            self.constant += -(-weight // 2) if single else weight

    def home(self, clique: tuple) -> tuple | None:
        """The table that takes a region: its own, else a larger one that is there, else a new one if it fits."""
        if clique in self.blocks:
            return clique
        if len(clique) < 3:
            wanted = set(clique)
            for known in self.blocks:
                if wanted < set(known):
                    return known
        size = math.prod(size for _, size in clique)
        fits = self.rule > 1 or (size <= 1 << 20 and self.tables + size <= 1 << 24)
        return clique if fits else None

    def raised(self, home: tuple, spans: dict, weight: int, *, single: bool) -> bool:
        """Put the weight on a region; False where the rule has no room or no credit for it.

        Where a table may not get larger, the region is taken by all classes of cells that it touches.
        """
        runs = [1 if self.rule == 1 else -(-size // WIDTH) for _, size in home]
        widths = [-(-size // run) for (_, size), run in zip(home, runs, strict=True)]
        sides = sum(widths)
        if not self.can_pay(sides):
            return False
        inside = [
            marked(spans.get(at), at[1], run, width)
            for at, run, width in zip(home, runs, widths, strict=True)
        ]
        known = self.blocks.get(home)
        block = known or Block(widths, soft=SOFT[self.rule] > 0)
        size, before, divided = len(block.table), block.largest, block.owed
        classes, cuts = block.classes(inside)
        cells = math.prod(len(names) for names in block.names(cuts))
        room = self.room - size + cells if known else self.room + sides + OVERHEAD + cells
        fits = self.rule == 1 or (room <= ROOM and (cells <= BLOCK or cells == size))
        if fits and (cells == size or self.can_pay(sides + cells)):
            touched = math.prod(map(len, classes))
            work = sides + (touched if cells == size else cells)
        else:
            cuts, room = [[], [], []], self.room
            touched = math.prod(map(len, classes))
            work = sides + touched
            if known is None or touched == size:
                return False
        if not self.can_pay(work):
            return False
        block.cut(inside, cuts)
        inner = block.inner(classes, cuts)
        block.add(inner, weight)
        if DIVIDED[self.rule]:
            most = min(DIVIDED[self.rule], ROOM - self.dividing + divided)
            block.divide(inner if single else None, weight, most)
            self.dividing += block.owed - divided
        if known is None:
            self.blocks[home] = block
            self.tables += math.prod(size for _, size in home)
            for attribute, width in zip(home, widths, strict=True):
                self.beliefs.setdefault(attribute, [0] * width)
        self.room, self.work = room, self.work + work
        self.rests += block.largest - before
        return True

    def bound(self) -> int:
        return min(self.flat, self.factor * (self.constant + self.rests + self.peaks))

    def settle(self, before: int) -> None:
        """Sweep where the bound has grown."""
        growth, part = GROWTH[self.rule]
        if self.bound() * part > self.swept * growth and self.can_sweep(before):
            shift = self.shift()
            for turn in range(self.sweeps()):
                if self.can_sweep(before):
                    self.sweep(before, turn, shift)
            self.measure()
            self.swept = self.bound()

    def sweeps(self) -> int:
        """How many sweeps there are when the bound has grown: fewer as the credit falls, if the rule says so."""
        most = SWEEPS[self.rule]
        if self.rule not in FEWEST:
            return most
        return min(max(most * self.credit() // max(STARTS[self.rule], 1), FEWEST[self.rule]), most)

    def squeeze(self, before: int, most: int) -> None:
        """Sweep while the total would pass the cap, by this rule and by the one beside it."""
        for turn in range(8):
            enough = self.cost(most) + self.others <= self.cap
            enough = enough or (self.beside is not None and self.beside.total() <= self.cap)
            if enough or not self.blocks or not self.can_sweep(before):
                break
            self.sweep(before, turn, self.shift())
            self.measure()

    def cost(self, most: int) -> int:
        """What located events cost: the bound, or `most` if that is less, unless more was shown before."""
        return max(min(self.bound(), most), self.shown)

    def can_sweep(self, before: int, more: int = 0) -> bool:
        """Whether the rule pays for one more sweep, and whether all sweeps for one event stay within a bound."""
        work = self.room + more
        return self.rule == 1 or (self.can_pay(work) and self.work + work <= before + ONCE[self.rule])

    def shift(self) -> int:
        """The binary logarithm of a step of soft maxima."""
        return max(4, (self.constant + self.rests + self.peaks).bit_length() - SOFT[self.rule] - 4)

    def sweep(self, before: int, turn: int, shift: int) -> None:
        soft = SOFT[self.rule] > 0
        divides = (turn % 2 == 1 or soft) and self.dividing > 0
        divide = divides and self.can_sweep(before, self.dividing)
        for clique, block in self.blocks.items():
            self.constant += block.sweep(clique, self.beliefs, shift, divide=divide)
        self.work += self.room + (self.dividing if divide else 0)

    def measure(self) -> None:
        """The parts of the bound after sweeps."""
        for block in self.blocks.values():
            block.rest()
        self.rests = sum(block.largest for block in self.blocks.values())
        self.peaks = sum(max(belief) for belief in self.beliefs.values())

    def encoded(self) -> tuple[dict, bytes]:
        """The state as plain values, and its tables as whole numbers of 8 bytes."""
        names = ("others", "flat", "relation", "factor", "constant", "shown", "swept", "joined", "work")
        plain: dict = {name: getattr(self, name) for name in names}
        plain["blocks"] = [
            [
                [list(at) for at in clique],
                block.shape[: len(clique)],
                block.largest,
                *([len(block.counts)] if DIVIDED[self.rule] else []),
            ]
            for clique, block in self.blocks.items()
        ]
        plain["beliefs"] = [list(at) for at in sorted(self.beliefs)]
        numbers = array("q")
        for clique, block in self.blocks.items():
            axes = len(clique)
            for part in (block.table, *block.labels[:axes], *block.messages[:axes]):
                numbers.extend(part)
            numbers.extend(price for price, _, _ in block.counts)
            numbers.extend(weight for _, weight, _ in block.counts)
            for axis in range(axes):
                for _, _, members in block.counts:
                    numbers.extend(name in members[axis] for name in range(block.shape[axis]))
        for at in sorted(self.beliefs):
            numbers.extend(self.beliefs[at])
        if sys.byteorder == "big":
            numbers.byteswap()
        if self.beside is None:
            return plain, numbers.tobytes()
        plain["undivided"], others = self.beside.encoded()
        return plain, numbers.tobytes() + others


class Block:
    """The table of one clique of up to three attributes, over classes of cells that no event has told apart.

    Cells of an attribute that lie in the same spans form a class; the table has one number for each product of
    classes, and is the same on all its cells. `labels` gives the class of each cell, `messages` belong to cells,
    and `lows` holds the largest of minus the messages in each class: so a maximum over cells is one over classes.
    `counts` has the price of each count that may be divided anew, what its region pays, and its classes; `owed` is
    the work of dividing them all, and `places` finds a count by its classes. Only an event that cuts classes looks
    at the whole list.
    """

    def __init__(self, widths: list[int], *, soft: bool) -> None:
        axes, self.soft = len(widths), soft
        self.shape = [1, 1, 1]
        self.table = [0]
        self.labels = [[0] * width for width in widths] + [[0]] * (3 - axes)
        self.messages = [[0] * width for width in widths] + [[0]] * (3 - axes)
        self.lows = [[0], [0], [0]]
        self.readers: list[Any] = [None, None, None]
        self.axes = axes
        self.largest = 0
        self.counts: list[list] = []
        self.places: dict[tuple, list] = {}
        self.owed = 0

    def classes(self, inside: list[bytes]) -> tuple[list[list[int]], list[list[int]]]:
        """Along each axis the classes that have a cell in the span, and those of them that have one outside."""
        hit, cut = [[0], [0], [0]], [[], [], []]
        for axis, marks in enumerate(inside):
            label = self.labels[axis]
            if 0 not in marks:
                hit[axis] = list(range(self.shape[axis]))
                continue
            within = set(compress(label, marks))
            hit[axis] = sorted(within)
            cut[axis] = sorted(within.intersection(compress(label, marks.translate(SWAPPED))))
        return hit, cut

    def names(self, cuts: list[list[int]]) -> list[range]:
        """The classes along each axis after the cuts."""
        return [range(size + len(cut)) for size, cut in zip(self.shape, cuts, strict=True)]

    def inner(self, classes: list[list[int]], cuts: list[list[int]]) -> list[list[int]]:
        """The classes inside the span, after the cuts: those that were cut have new numbers there."""
        found = []
        for axis, (own, cut) in enumerate(zip(classes, cuts, strict=True)):
            if cut:
                first, gone = self.shape[axis] - len(cut), set(cut)
                own = [name for name in own if name not in gone] + list(range(first, self.shape[axis]))
            found.append(own)
        return found

    def cut(self, inside: list[bytes], cuts: list[list[int]]) -> None:
        """Give the cells of a class that are inside the span a class of their own, the next new number."""
        for axis, cut in enumerate(cuts):
            if not cut:
                continue
            new = {name: self.shape[axis] + i for i, name in enumerate(cut)}
            marks = inside[axis]
            self.labels[axis] = [
                new.get(name, name) if mark else name
                for name, mark in zip(self.labels[axis], marks, strict=True)
            ]
            self.readers[axis] = None
            inner = math.prod(self.shape[axis + 1 :])
            chunk, found = self.shape[axis] * inner, []
            for start in range(0, len(self.table), chunk):
                found += self.table[start : start + chunk]
                for name in cut:
                    found += self.table[start + name * inner : start + (name + 1) * inner]
            self.table = found
            self.shape[axis] += len(cut)
            for _, _, members in self.counts:
                members[axis] |= {new[name] for name in cut if name in members[axis]}
            self.lows[axis] = self.tops(axis, [-m for m in self.messages[axis]])
        if any(cuts) and self.counts:
            self.owed = sum(self.work_of(members) for *_, members in self.counts)
            self.places = {tuple(map(frozenset, count[2])): count for count in self.counts}

    def tops(self, axis: int, vector: list[int]) -> list[int]:
        """The largest value in each class of an axis."""
        size = self.shape[axis]
        if size == 1:
            return [max(vector)]
        if self.readers[axis] is None:
            found, names, values = [-LIMIT] * size, self.labels[axis], vector
        else:
            firsts, others, names, _ = self.readers[axis]
            found, values = list(firsts(vector)), others(vector)
        for name, value in zip(names, values, strict=False):
            if value > found[name]:
                found[name] = value
        return found

    def read_ahead(self) -> None:
        """Prepare to read along each axis one cell of each class, and the others, and for each cell its class."""
        for axis in range(self.axes):
            if self.readers[axis] is None and self.shape[axis] > 1:
                labels, firsts = self.labels[axis], {}
                others = [cell for cell, name in enumerate(labels) if firsts.setdefault(name, cell) != cell]
                first = itemgetter(*(firsts[name] for name in range(self.shape[axis])))
                names = [labels[cell] for cell in others]
                other = itemgetter(
                    *others, 0, 0
                )  # two more than names, since of one cell it would be no list
                self.readers[axis] = first, other, names, itemgetter(*labels)

    def passed_on(self, axis: int, came: list[int], share: list[int]) -> list[int]:
        """The beliefs about an attribute, of what came from elsewhere and a share of each class."""
        axes = self.axes
        shares = share * len(came) if len(share) == 1 else list(self.readers[axis][3](share))
        new = list(map(add, came, shares))
        if axes > 1:
            new = [value // axes for value in new]
            shares = list(map(sub, new, came))
        self.messages[axis] = shares
        return new

    def add(self, classes: list[list[int]], weight: int) -> None:
        table, (_, second, third), (one, two, three) = self.table, self.shape, self.lows
        last = classes[2]
        whole = last[-1] - last[0] + 1 == len(last)  # neighbours: a slice of the table
        low, high, ends = last[0], last[-1] + 1, [three[k] for k in last]
        largest = self.largest
        for i in classes[0]:
            for j in classes[1]:
                start = (i * second + j) * third
                if whole:
                    row = [value + weight for value in table[start + low : start + high]]
                    table[start + low : start + high] = row
                else:
                    row = []
                    for k in last:
                        table[start + k] += weight
                        row.append(table[start + k])
                most = max(map(add, row, ends)) + one[i] + two[j]
                if most > largest:
                    largest = most
        self.largest = largest

    def work_of(self, members: list) -> int:
        """The work of dividing a count with these classes."""
        if not self.soft:
            return len(self.table) + COUNT
        return math.prod(map(len, members)) + (sum(self.shape[: self.axes]) + COUNT) // QUICK

    def divide(self, classes: list[list[int]] | None, price: int, most: int) -> None:
        """Keep a count, if there is one, to be divided, with others of its region as one; a list that would be
        more work than `most` is closed.
        """
        self.close_above(most)
        if classes is None:
            return
        region = [set(names) for names in classes]
        own, key = self.work_of(region), tuple(map(frozenset, region))
        if key in self.places:
            count = self.places[key]
            count[0] += price
            count[1] += price
            return
        self.close_above(most - own)
        if own <= most:
            self.places[key] = [price, price, region]
            self.counts.append(self.places[key])
            self.owed += own

    def close_above(self, most: int) -> None:
        """Keep no counts that are more work to divide."""
        if self.owed > max(most, 0):
            self.counts, self.places, self.owed = [], {}, 0

    def divided(self, whole: list[int]) -> int:
        """Divide each count where the largest sums inside and outside are equal; what everybody pays more then.

        `whole` is the table plus what arrives along its axes.
        """
        _, second, third = self.shape
        raised = 0
        for count in self.counts:
            price, old, (one, two, three) = count
            cells = [(i * second + j) * third + k for i in one for j in two for k in three]
            values = [whole[cell] for cell in cells]
            for cell in cells:
                whole[cell] = -LIMIT
            outside = max(whole)
            new = min(max(outside - max(values) + old, 0), price) if len(cells) < len(whole) else 0
            for cell, value in zip(cells, values, strict=True):
                whole[cell] = value + new - old
                self.table[cell] += new - old
            count[1] = new
            raised += (price - new + 1) // 2 - (price - old + 1) // 2
        return raised

    def sweep(self, clique: tuple, beliefs: dict, shift: int, *, divide: bool) -> int:
        """Each attribute gets an equal share of the maxima, soft ones or not, after counts were divided where
        `divide` is set; what everybody pays more then.

        What is left of the maximum is not looked for: `rest` does that, after the last sweep.
        """
        self.read_ahead()
        came = [list(map(sub, beliefs[at], self.messages[axis])) for axis, at in enumerate(clique)]
        tops = [self.tops(axis, vector) for axis, vector in enumerate(came)] + [[0]] * (3 - self.axes)
        values, raised = self.with_sides(tops), 0
        if self.soft:
            peak = max(values)
            masses = masses_of(values, peak, shift) if self.axes > 1 or divide else []
            if divide and self.counts:
                raised = self.soft_division(values, masses, peak, shift)
            maxima = self.soft_maxima(values, masses, peak, shift)
        else:
            raised = self.divided(values) if divide else 0
            maxima = self.by_slices(max, values)
        for axis, most in enumerate(maxima):
            beliefs[clique[axis]] = self.passed_on(axis, came[axis], list(map(sub, most, tops[axis])))
        return raised

    def rest(self) -> None:
        """The largest of what remains of the table, and of minus the messages in each class."""
        for axis in range(self.axes):
            self.lows[axis] = self.tops(axis, list(map(neg, self.messages[axis])))
        self.largest = max(self.with_sides(self.lows))

    def with_sides(self, sides: list[list[int]]) -> list[int]:
        """The table plus a vector along each of its axes."""
        one, two, three = sides
        bases = one if two == [0] else [a + b for a in one for b in two]
        if three != [0]:
            bases = [base + value for base in bases for value in three]
        return list(map(add, bases, self.table))

    def soft_maxima(self, values: list[int], masses: list[int], peak: int, shift: int) -> list[list[int]]:
        """The soft maximum in each slice along each axis; the largest value where all are far below the peak."""
        up = shift - 4
        if self.axes == 1:  # a slice is one value
            steps = [(peak - value) >> shift for value in values]
            most = [
                value if step >= FAR else peak + (RISES[step + REACH if step > -REACH else 0] << up)
                for step, value in zip(steps, values, strict=True)
            ]
            return [most]
        found, largest = [], None
        for axis, sums in enumerate(self.by_slices(sum, masses)):
            most = [
                peak + ((LOGS[(mass << 6 >> (power := mass.bit_length() - 1)) - 64] + RISEN[power]) << up)
                if mass >= LEAST_MASS
                else None
                for mass in sums
            ]
            if None in most:
                largest = largest or self.by_slices(max, values)
                most = [top if soft is None else soft for soft, top in zip(most, largest[axis], strict=True)]
            found.append(most)
        return found

    def soft_division(self, values: list[int], masses: list[int], peak: int, shift: int) -> int:
        """Move each count towards where the masses inside and outside are equal, or by a quarter of the difference
        of their largest values where one has no mass; what everybody pays more then.
        """
        _, second, third = self.shape
        slabs, before = [], list(values)
        whole, raised = sum(masses), 0
        for count in self.counts:
            price, old, (one, two, three) = count
            cells = [(i * second + j) * third + k for i in one for j in two for k in three]
            inside = sum([masses[cell] for cell in cells])
            if len(cells) < len(values):
                outside = whole - inside
                if min(inside, outside) >= LEAST_MASS:
                    more = (log_of(outside) - log_of(inside)) << (shift - 4)
                else:
                    slabs = slabs or self.by_slices(max, before)
                    others = (
                        most
                        for slab, own in zip(slabs, (one, two, three), strict=False)
                        for name, most in enumerate(slab)
                        if name not in own
                    )
                    more = (max(others) - max(values[cell] for cell in cells)) >> 2
                new = min(max(old + more, 0), price)
            else:
                new = 0
            if new == old:
                continue
            count[1] = new
            raised += (price - new + 1) // 2 - (price - old + 1) // 2
            change = new - old
            for cell in cells:
                self.table[cell] += change
                values[cell] += change
                masses[cell] = mass_of((peak - values[cell]) >> shift)
            whole += sum([masses[cell] for cell in cells]) - inside
        return raised

    def by_slices(self, of: Any, numbers: list[int]) -> list[list[int]]:
        """The sum or the maximum of the numbers of a table in each class of each of its axes."""
        _, second, third = self.shape
        rows = of_rows(of, numbers, third)
        found = [of_rows(of, rows, second)]
        if self.axes > 1:
            found.append(of_columns(of, rows, second))
        if self.axes > 2:
            found.append(of_columns(of, numbers, third))
        return found


def of_rows(of: Any, numbers: list[int], width: int) -> list[int]:
    """The sum or the maximum of each row of a table that has so many columns, in few large steps."""
    if width == 1:
        return numbers
    if width * width < len(numbers):
        return list(map(of, zip(*(numbers[column::width] for column in range(width)), strict=True)))
    return [of(numbers[start : start + width]) for start in range(0, len(numbers), width)]


def of_columns(of: Any, numbers: list[int], width: int) -> list[int]:
    """The same of each column."""
    if width == len(numbers):
        return numbers
    if width * width > len(numbers):
        rows = (numbers[start : start + width] for start in range(0, len(numbers), width))
        return list(map(of, zip(*rows, strict=True)))
    return [of(numbers[column::width]) for column in range(width)]


def mass_of(below: int) -> int:
    """The mass of a value so many steps below the largest one, in 2^-16 of the mass of that."""
    return POWERS[REACH + max(below, -REACH)] if below < REACH else 0


def masses_of(values: list[int], peak: int, shift: int) -> list[int]:
    """The masses of many values."""
    steps = [(peak - value) >> shift for value in values]
    return [0 if step >= REACH else POWERS[step + REACH if step > -REACH else 0] for step in steps]


def log_of(mass: int) -> int:
    """The logarithm of a mass, in parts of 256."""
    power = mass.bit_length() - 1
    return DOUBLINGS[power] + LOGS[(mass << 6 >> power) - 64]


def mask_of(size: object, text: str) -> int:
    """The cells of a span, as bits."""
    mask = int(text, 16)
    if type(size) is not int or mask <= 0 or mask.bit_length() > size:
        raise Wrong("its region is not understood")
    return mask


def marked(mask: int | None, size: int, run: int, width: int) -> bytes:
    """For each run of cells of an attribute, 1 where one of them is in a span, else 0; no span is all of it."""
    if mask is None:
        return b"\1" * width
    cells = f"{mask:0{size}b}"[::-1].encode().translate(BITS)
    return cells if run == 1 else bytes(any(cells[at : at + run]) for at in range(0, size, run))


def check_cap(terms: dict) -> None:
    """The cap must follow from the budget."""
    epsilon, delta, cap = rational(terms["epsilon"]), rational(terms["delta"]), terms["cap"]
    if epsilon <= 0 or not 0 <= delta < 1:
        raise Wrong("its budget makes no sense")
    if delta == 0:
        if terms["currency"] != "epsilon" or "key_delta" in terms or cap != math.floor(epsilon * UNITS):
            raise Wrong("its cap is not its epsilon")
        return
    if terms["currency"] != "rho":
        raise Wrong("a budget with a delta is kept in rho")
    keys = rational(terms.get("key_delta", "0"))
    if "key_delta" in terms and not 0 < keys < delta:
        raise Wrong("its delta for keys is no part of its delta")
    delta -= keys
    if "filter" in terms:
        check_filter_cap(terms, epsilon, delta)
        return
    implied = zcdp_log_delta(cap / UNITS, float(epsilon))
    if implied > math.log(delta) + 1e-6:
        raise Wrong("its cap on rho does not imply its epsilon and delta")
    if cap and zcdp_log_delta(cap / UNITS * 1.01, float(epsilon)) < math.log(delta):
        raise Wrong("its cap on rho is not the one of its epsilon and delta")


def check_filter_cap(terms: dict, epsilon: Fraction, delta: Fraction) -> None:
    """The cap of a filter must follow from the budget, from below and not by far."""
    name, parameter = filter_in(kept_by(terms))
    rho = Fraction(terms["cap"], UNITS)
    with decimal.localcontext(wide(60 + 3 * int(-math.log10(delta)) + int(epsilon))):
        e, small = exactly(epsilon), exactly(delta)

        def implied(spent: Fraction) -> Decimal:
            if name == "gdp":
                return gdp_delta(2 * spent, e)
            a = exactly(parameter)
            exponent = (a - 1) * (a * exactly(spent) - e) + (a - 1) * (1 - 1 / a).ln() - a.ln()
            return exponent.exp()

        if name == "renyi" and not 1 < parameter <= 10**6:
            raise Wrong("its order is none")
        if name == "gdp":
            share, back, whole = rational(terms["reserve"]), terms["reserve_units"], terms["total_units"]
            if (
                type(back) is not int
                or type(whole) is not int
                or back < 1
                or back != math.floor(share * whole)
            ):
                raise Wrong("its reserve is not the part of the whole that its terms say")
            if terms["cap"] != (whole - back) * 10**15 // (10**15 + 1):
                raise Wrong("its cap is not what its reserve leaves of the whole")
            rho = Fraction(whole, UNITS)
        if implied(rho) > small * (1 + Decimal(10) ** -25):
            raise Wrong("its cap on rho does not imply its epsilon and delta")
        if terms["cap"] and implied(rho * Fraction(101, 100)) < small:
            raise Wrong("its cap on rho is not the one of its epsilon and delta")


def gdp_delta(mu_squared: Fraction, epsilon: Decimal) -> Decimal:
    """P[Z > epsilon/mu - mu/2] - exp(epsilon) P[Z > epsilon/mu + mu/2] for a normal Z, by one series for both."""
    mu = exactly(mu_squared).sqrt()
    digits = Decimal(10) ** -(decimal.getcontext().prec + 5)

    def tail(x: Decimal) -> Decimal:
        term = total = x
        k = 1
        while abs(term) > digits or k < x * x:
            k += 2
            term *= x * x / k
            total += term
        return Decimal("0.5") - total * (-x * x / 2).exp() / (2 * circle()).sqrt()

    return tail(epsilon / mu - mu / 2) - epsilon.exp() * tail(epsilon / mu + mu / 2)


def circle() -> Decimal:
    """Pi to the digits of the context, by the means of Gauss and Legendre: each step doubles the digits."""
    a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
    for _ in range(decimal.getcontext().prec.bit_length() + 2):
        a, b, t, p = (a + b) / 2, (a * b).sqrt(), t - p * ((a - b) / 2) ** 2, 2 * p
    return (a + b) ** 2 / (4 * t)


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
    if verdict["filter"] in FILTER_TERMS:
        lines.append(f"rho is counted by the privacy filter {verdict['filter']!r}")
    if "key_delta" in verdict:
        lines.append(f"of delta, for keys: {verdict['key_delta_spent']:.6g} spent of {verdict['key_delta']}")
    if verdict["promise"]:
        lines.append(f"promised: {verdict['promise']}")
    lines.append(
        f"answers checked against their hashes: {verdict['answers_checked']}, of which steps of handles "
        f"{verdict['steps_checked']}"
    )
    lines.append(f"last hash: {verdict['head']}")
    lines += [f"WRONG  {problem}" for problem in verdict["problems"]]
    lines.append("NOT SOUND" if verdict["problems"] else "SOUND: every price, sum, link and bound is right")
    return "\n".join(lines), 1 if verdict["problems"] else 0
