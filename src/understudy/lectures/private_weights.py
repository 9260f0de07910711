"""Private multiplicative weights: the Iterative Construction of Lecture 7, online, with its best-known update."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from understudy.curator.curator import Curator
from understudy.curator.of_table import curator_of
from understudy.errors import ParameterError
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import OnlineTerms, practical_terms, theorem_terms
from understudy.project import Project
from understudy.rational import Number
from understudy.standin.dense.weights import Device, Precision
from understudy.standin.multiplicative import MultiplicativeWeights


class PrivateMultiplicativeWeights(OnlineConstruction):
    """Counts from a histogram of weights, which is checked by the sparse vector and moved where it is wrong.

    `table` is the project, or its Curator; it protects privacy. `queries` is how many questions may be asked. Give
    what is to be paid, `epsilon` or `rho`, and get the smallest error that the theorem allows for it (`error`, in
    people); or give the error, `alpha`, as a part of all rows, and `updates`, how many wrong answers of the
    weights are paid for (as many as there can be where it is left out): each run is charged when it begins. `beta`
    is the probability that some answer is further off. `name` and `analyst` are those of
    `OnlineConstruction`, whose privacy and accuracy these are. `dtype` is the precision of the weights; with
    `device="cuda"` they are held by a CUDA device, which has room for more cells than the machine's memory
    (`understudy[cuda]`; 2^28 cells at most otherwise).

    Updates     On gaps of α the weights are wrong at most B(α) times, whatever is asked: each update brings them
                nearer to the table in relative entropy, which is ln|X| at first. [Lecture 7, Definition 2]

    Raises a `ParameterError` where both or neither of a price and an error are given, and a `RefusedError` where
    no error below all of the rows can be promised at the price.
    """

    def __init__(
        self,
        table: Curator | Project,
        *,
        queries: int,
        epsilon: Number | None = None,
        rho: Number | None = None,
        alpha: Number | None = None,
        updates: int | None = None,
        beta: Number = 0.05,
        name: str = "",
        analyst: str = "",
        dtype: Precision = "float64",
        device: Device = "cpu",
    ) -> None:
        curator = curator_of(table)
        is_priced = epsilon is not None or rho is not None
        if is_priced == (alpha is not None):
            raise ParameterError("give either what is to be paid, epsilon or rho, or the error, alpha")
        if is_priced and updates is not None:
            raise ParameterError("updates go with alpha: for a price, the theorem says how many there can be")

        def weights(gap: Number) -> MultiplicativeWeights:
            return MultiplicativeWeights(domain=curator.domain, alpha=gap, dtype=dtype, device=device)

        if alpha is None:
            terms = theorem_terms(curator, weights, queries=queries, epsilon=epsilon, rho=rho, beta=beta)
        else:
            terms = _terms(curator, weights, alpha, queries, updates, beta)
        terms = terms.resumed(curator, name)
        gap = Fraction(terms.gap, curator.rows_at_least)
        super().__init__(curator, weights(gap), terms, name=name, analyst=analyst)

    @property
    def error(self) -> int:
        """How far an answer can be off, in people."""
        return self.terms.error


def _terms(
    curator: Curator,
    weights: Callable[[Number], MultiplicativeWeights],
    alpha: Number,
    queries: int,
    updates: int | None,
    beta: Number,
) -> OnlineTerms:
    """Terms for an error of `alpha`: a theorem's where all updates that there can be are paid for."""
    gap = Fraction(
        practical_terms(curator, alpha=alpha, queries=queries, updates=1).gap, curator.rows_at_least
    )
    most = max(weights(gap).most_updates(gap), 1)
    paid = most if updates is None else updates
    terms = practical_terms(curator, alpha=alpha, queries=queries, updates=paid, beta=beta)
    return terms.bounded(is_bounded=paid >= most)
