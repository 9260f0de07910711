"""What quantiles buy in a session: counts that search for them, or all ranges of their attribute.

A quantile that is asked for in SQL is told by counts of the rows up to some edges (`quantile_search`). Each is a
question of the session like any other: it is bought by itself, or follows from a histogram or a class, which is
bought ahead where the allowance permits that. Where several quantiles, or those of several groups, are asked for
at once, all ranges of the attribute can cost less than the counts, and are bought instead.

Ratio       Both ways are those of a direct session too, and which is taken is found from public numbers that are
            the same there: so quantiles count alike on both sides of the allowance.
Price       All that may be bought is planned before the first purchase. A search whose next count would pass the
            price that was told ends there, and the quantile's interval is wider.
Made of     cells: where neither is possible, or can be paid, the counts of all bins are bought, as for a GROUP BY,
            and their errors add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from understudy.answer.answer import Answer
from understudy.errors import InsufficientBudgetError, OvertakenError
from understudy.query.marginal import Marginal
from understudy.query.quantiles_of_bins import QuantilesOfBins
from understudy.sessions.answer_memory import Identity, identity
from understudy.sessions.asking import Asking
from understudy.sessions.buyer import TRIES, Buyer
from understudy.sessions.direct import intervals
from understudy.sessions.forecast import Forecast
from understudy.sessions.knowledge import TOUCHING
from understudy.sessions.product_class import ProductPurchase
from understudy.sessions.purchase import Purchase
from understudy.sessions.quantile_search import QuantileSearch, SearchPath
from understudy.sessions.question_plan import QuestionPlan, scope

CHEAPER = 0.8
"""Ranges are bought where they cost at most this part of the counts of a search. It leaves room for what a count
costs more in one session than in another (κ of `allowance`)."""

MOST_COUNTS = 128
"""The most counts of a search, in all groups of a marginal."""

MOST_KEPT = 256
"""Searches that are kept for who asks again."""

Running = Mapping[int, QuantilesOfBins]
"""The quantiles of a question, by the places of their marginals."""


@dataclass(frozen=True, eq=False)
class _QuantilesPlan:
    """What the quantiles of a question buy, and what the rest of it does.

    searches  those whose quantiles are searched for, by their places
    ranges    the classes that are bought, by the places of their marginals
    whole     all that the question may buy: these classes, the counts of searches, and its other parts
    """

    searches: Mapping[int, QuantileSearch]
    ranges: Mapping[int, Purchase]
    whole: QuestionPlan


class QuantileBuyer:
    """Finds, and buys, what the quantiles of a session's questions need; the ways are those of the module."""

    def __init__(self, buyer: Buyer) -> None:
        self._buyer = buyer
        self._told: set[tuple[Identity, QuantilesOfBins]] = set()
        self._ended: set[tuple[Identity, QuantilesOfBins]] = set()
        self._latest: dict[tuple[Identity, QuantilesOfBins], QuantileSearch | None] = {}

    # ---- what has to be bought

    def plan(
        self,
        marginals: Sequence[Marginal],
        running: Running,
        analyst: str,
        *,
        asked: int,
        after: Sequence[Purchase] = (),
    ) -> QuestionPlan | None:
        """All that a question with quantiles may buy; None where its quantiles need nothing, or are made of cells.

        `asked` is the number of the question among all of the session. It comes `after` purchases that are planned
        for questions before it.
        """
        found = self._planned(marginals, running, analyst, asked, after)
        return None if found is None else found.whole

    def _planned(
        self,
        marginals: Sequence[Marginal],
        running: Running,
        analyst: str,
        asked: int,
        after: Sequence[Purchase] = (),
    ) -> _QuantilesPlan | None:
        searches = self._searches(marginals, running)
        walks = {place: self._walk(search) for place, search in searches.items()}
        walks = {place: walk for place, walk in walks.items() if walk.missing}
        if not walks:
            return None
        others = self._others(marginals, running)

        def find(forecast: Forecast) -> tuple[list[Purchase], dict[int, Purchase]]:
            before, ranges = list[Purchase](), dict[int, Purchase]()
            forecast = forecast.after(after) if after else forecast
            for place, walk in walks.items():
                offer = self._ranges(forecast, searches[place], walk, asked)
                if offer is not None:
                    same = [known for known in ranges.values() if scope(known) == scope(offer)]
                    ranges[place] = same[0] if same else offer
                    found: list[Purchase] = [] if same else [offer]
                else:
                    found = self._counts(forecast, searches[place], walk, asked)
                forecast = forecast.after(found)
                before += found
            return before, ranges

        before, ranges = self._buyer.plans.forecast(find, analyst)
        whole = self._buyer.plans.of(others, analyst, asked=asked + len(before), before=[*after, *before])
        whole = replace(whole, before=before)
        if not self._buyer.funds(analyst).is_payable(whole.purchases):
            return None
        return _QuantilesPlan({place: searches[place] for place in walks}, ranges, whole)

    def _searches(self, marginals: Sequence[Marginal], running: Running) -> dict[int, QuantileSearch]:
        """The searches of a question's quantiles; those that were answered before are left out."""
        found = dict[int, QuantileSearch]()
        for place, need in running.items():
            if (identity(marginals[place]), need) not in self._told:
                search = self._search(marginals[place], need)
                if search is not None:
                    found[place] = search
        return found

    def _search(self, marginal: Marginal, need: QuantilesOfBins) -> QuantileSearch | None:
        """None where the quantiles are made of cells. The latest searches are kept, with what they found."""
        key = identity(marginal), need
        if key not in self._latest:
            while len(self._latest) >= MOST_KEPT:
                self._latest.pop(next(iter(self._latest)), None)
            self._latest[key] = self._search_anew(marginal, need)
        return self._latest[key]

    def _search_anew(self, marginal: Marginal, need: QuantilesOfBins) -> QuantileSearch | None:
        calibrator = self._buyer.calibrator
        search = QuantileSearch.of(marginal, need, calibrator.width)
        if search is None or not calibrator.is_ordered(need.over):
            return None
        is_long = len(search.groups) * search.most > MOST_COUNTS
        offer = self._offer(search, search.most, len(search.groups), 1) if is_long else None
        return None if is_long and offer is None else search

    def _walk(self, search: QuantileSearch) -> SearchPath:
        """How far a search comes by what is known now."""
        known, memory = self._buyer.known, self._buyer.memory
        is_direct = self._buyer.promise.terms.is_direct
        most = (
            0.0 if is_direct and not self._buyer.policy.was_asked_for(search.marginal) else 2 * search.width
        )

        def is_told(count: Marginal, low: float, high: float) -> bool:
            return high - low <= most + TOUCHING or memory.find(count) is not None

        return search.walk(known.knowledge, is_told, takes_all=is_direct)

    def _ranges(
        self, forecast: Forecast, search: QuantileSearch, walk: SearchPath, asked: int
    ) -> ProductPurchase | None:
        """All ranges in all groups, where they cost less than the counts of a search that has come so far."""
        if self._buyer.policy.was_asked_for(search.marginal):
            return None
        most, counts = max(walk.open.values()), sum(walk.open.values())
        return self._offer(search, most, counts / most, asked, forecast)

    def _offer(
        self,
        search: QuantileSearch,
        most: int,
        groups: float,
        asked: int,
        forecast: Forecast | None = None,
    ) -> ProductPurchase | None:
        """The ranges, if they cost less than `most` counts in each of some groups.

        Groups are of different people: two of them cost what all do, since a row moves from one to another.
        """
        policy = self._buyer.policy if forecast is None else forecast.policy
        together = min(groups, self._buyer.calibrator.relation.cells_of_a_difference)
        return policy.ranges(search.marginal, search.need.over, most=CHEAPER * together * most, asked=asked)

    def _counts(
        self, forecast: Forecast, search: QuantileSearch, walk: SearchPath, asked: int
    ) -> list[Purchase]:
        """Counts that cost as much as those of a search may: of the narrowest rows or of the first, if that is
        more.
        """
        ways = list[list[Purchase]]()
        for narrow in (False, True):
            found, at = list[Purchase](), forecast
            for group, count in walk.missing.items():
                more = at.of(count, asked=asked)
                if not _tells_ranges(more[-1], search.need.over):
                    at = at.after(more)
                    like = search.upto(group, 0) if narrow else count
                    for _ in range(walk.open[group] - 1):
                        own = at.own_counts(like, asked=asked)
                        more, at = [*more, *own], at.after(own)
                found += more
            ways.append(found)
        return max(ways, key=lambda some: forecast.funds.quote(some).units)

    def _others(self, marginals: Sequence[Marginal], running: Running) -> list[Marginal]:
        """The parts of a question that are bought as they are: all but those whose quantiles are searched for."""
        return [
            marginal
            for place, marginal in enumerate(marginals)
            if place not in running or self._search(marginal, running[place]) is None
        ]

    # ---- purchases

    def buy(
        self, marginals: Sequence[Marginal], running: Running, asking: Asking, *, asked: int
    ) -> QuestionPlan | None:
        """Buy what quantiles need, and return what is planned for the rest; for whoever holds the lock.

        None where there is nothing to buy for quantiles, or where others have spent what they need.
        """
        self._buyer.catch_up()
        for _ in range(TRIES):
            planned = self._planned(marginals, running, asking.analyst, asked)
            if planned is None:
                return None
            try:
                self._buy(planned, marginals, asking)
            except OvertakenError:
                self._buyer.catch_up()
            except InsufficientBudgetError:
                return None
            else:
                planned.whole.before.clear()
                return planned.whole
        return None

    def _buy(self, planned: _QuantilesPlan, marginals: Sequence[Marginal], asking: Asking) -> None:
        buyer, whole = self._buyer, planned.whole
        funds = buyer.funds(asking.analyst)
        told = funds.quote(whole.purchases).units
        for place, purchase in planned.ranges.items():
            if self._walk(planned.searches[place]).missing:  # one class of ranges may tell another
                buyer.make(purchase, asking)
                whole.made(purchase, buyer.journal.length, buyer.nothing)
        first = True
        others = [purchase for part in whole.parts.values() for purchase in part]
        for search in planned.searches.values():
            self._ended.add((identity(search.marginal), search.need))
            while (count := self._walk(search).next) is not None:
                planned_now = self._next(count, asking, all_of_it=first)
                cost = funds.quote([*planned_now, *others]).units
                if asking.charged.units + cost > told:
                    break  # its price was told, and is kept
                if buyer.plans.left_after([*planned_now, *others]) < whole.left:
                    break  # what is planned for the other parts needs its shares of β
                buyer.asked += 1
                plan = QuestionPlan({identity(count): planned_now}, buyer.journal.length)
                if buyer.bought(count, asking, asked=buyer.asked, plan=plan) is None:
                    break
                first = False
                whole.step, whole.moved = buyer.journal.length, True
        whole.most = told - asking.charged.units

    def _next(self, count: Marginal, asking: Asking, *, all_of_it: bool) -> list[Purchase]:
        """What the next count of a search buys: its own counts, and with the first what is due ahead as well."""
        asked = self._buyer.asked + 1

        def find(forecast: Forecast) -> list[Purchase]:
            found = forecast.of(count, asked=asked) if all_of_it else forecast.own_counts(count, asked=asked)
            return found

        return self._buyer.plans.forecast(find, asking.analyst)

    # ---- answers

    def told(self, marginals: Sequence[Marginal], running: Running) -> dict[int, Answer]:
        """What is known of the marginals whose quantiles were searched for, by their places.

        Their cells are told as far as they are known; what is known of their running sums tells the quantiles.
        """
        found = dict[int, Answer]()
        for place, (search, walk) in self._ends(marginals, running).items():
            self._count(search, walk)
            was_told = (identity(marginals[place]), running[place]) in self._told
            found[place] = self._answer(search, was_told=was_told)
        return found

    def places(self, marginals: Sequence[Marginal], running: Running) -> set[int]:
        """The places of the marginals that `told` would tell of."""
        return set(self._ends(marginals, running))

    def _ends(
        self, marginals: Sequence[Marginal], running: Running
    ) -> dict[int, tuple[QuantileSearch, SearchPath]]:
        """The searches that are at their end, by the places of their marginals; cells that are known need none."""
        found = dict[int, tuple[QuantileSearch, SearchPath]]()
        for place, need in running.items():
            marginal, search = marginals[place], self._search(marginals[place], need)
            if search is None or self._buyer.memory.find(marginal) is not None:
                continue
            walk, key = self._walk(search), (identity(marginal), need)
            if not walk.missing or key in self._told or key in self._ended:
                found[place] = search, walk
        return found

    def keep(self, marginals: Sequence[Marginal], running: Running, answers: Sequence[Answer]) -> None:
        """Remember which quantiles were told: asked again, they cost nothing, however far their search came."""
        for place, need in running.items():
            if answers[place].source != "uncertified":
                self._told.add((identity(marginals[place]), need))

    def _count(self, search: QuantileSearch, walk: SearchPath) -> None:
        """Let the policy know of the counts that a search was told for nothing: they were asked as any others."""
        buyer = self._buyer
        if buyer.policy.was_asked_for(search.marginal):
            return
        for count in walk.asked:
            if buyer.memory.find(count) is None:
                buyer.asked += 1
                buyer.deduced(count, buyer.nothing)

    def _answer(self, search: QuantileSearch, *, was_told: bool) -> Answer:
        """The cells of a marginal as far as they are known."""
        known, marginal = self._buyer.known, search.marginal
        table = intervals(known.knowledge, marginal)
        assert table is not None  # running sums of a box are known, if only to be possible
        value = np.clip(search.guess(known.knowledge), table.low, table.high)
        error = np.maximum(value - table.low, table.high - value)
        source = "repeat" if was_told else "implied" if len(marginal.clique) <= 1 else "pinned"
        beta, nothing = float(self._buyer.promise.terms.beta), self._buyer.nothing
        answer = Answer(marginal, value, error, value, nothing, beta, source, noise=known.noise)
        certified = self._buyer.promise.certified(answer, known.knowledge.total[1])
        reach = certified.population_error
        if reach is None:
            return certified
        wider = np.maximum(error - self._buyer.promise.width, 0.0)
        return replace(certified, population_error=reach + wider)


def _tells_ranges(purchase: Purchase, name: str) -> bool:
    """Whether a purchase is a class that tells counts up to every edge of an attribute."""
    return isinstance(purchase, ProductPurchase) and name in purchase.by
