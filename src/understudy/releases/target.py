"""A column that models are going to predict: marginals with it weigh more in a release.

What a model learns from synthetic rows is how other columns, alone and two by two, go together with the predicted
one. A release shares its precision among all marginals of its workload, and of many columns most marginals do not
hold the one that matters. A target changes the weights of the workload, and nothing else: which marginals are
picked for the stand-in's tree, and how precisely the last sweep measures each, follow from the weights. The last
sweep of an adaptive release over pairs measures the triples with the target, too (`triples_with`): how two columns
together tell it is what models of adult's rows at epsilon 1 lacked. The column is named by whoever makes the
release, before anything is looked at; a release without a target treats all alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import sqrt

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.query.workload import Workload

TARGET_WEIGHT = 4
"""What a marginal with the target weighs, beside 1 for one without."""


def targeted(workload: Workload, target: str | None) -> Workload:
    """The workload for a release with that target; as it is where there is none."""
    return workload if target is None else weighted_for(workload, target)


def importance(clique: Clique, target: str | None) -> float:
    """What an error of the marginal counts where methods are compared: the root of the weight of its variance."""
    return sqrt(TARGET_WEIGHT) if target is not None and target in clique else 1.0


def triples_with(target: str | None, workload: Iterable[Clique]) -> list[Clique]:
    """The marginals of three attributes that hold the target, if there is one."""
    return [clique for clique in workload if len(clique) == 3 and target in clique]


def importance_of_pairs(target: str | None, pairs: Iterable[Clique]) -> list[int]:
    """What pairs weigh in a sweep over all of them, beside 1 for a triple."""
    return [TARGET_WEIGHT if target in pair else 1 for pair in pairs]


def pairs_and_triples(
    domain: Domain, pairs: Sequence[Clique], triples: Sequence[Clique], target: str | None
) -> Workload:
    """What a sweep over pairs measures, with what each weighs as long as nothing was seen of it."""
    weights = [*importance_of_pairs(target, pairs), *[1] * len(triples)]
    return Workload.of(domain, [*pairs, *triples], list(map(Fraction, weights)))


def weighted_for(workload: Workload, target: str, weight: int = TARGET_WEIGHT) -> Workload:
    """The workload in which the marginals with the attribute `target` weigh `weight` times what they did.

    Raises a `ParameterError` where the domain has no such attribute, or no marginal with it and another one is in
    the workload.
    """
    domain = workload.domain
    if target not in domain.names:
        raise ParameterError(
            f"the target {target!r} is no declared attribute",
            remedy="Name one of the declared attributes",
            suggestions=domain.names,
        )
    if not any(target in clique and len(clique) > 1 for clique in workload):
        raise ParameterError(
            f"no marginal of the workload has the target {target!r} with another attribute",
            remedy="Ask for marginals over at least two attributes, the target among them, or leave `target` out",
        )
    weights = [
        share * weight if target in clique else share
        for clique, share in zip(workload.cliques, workload.weights, strict=True)
    ]
    return Workload.of(domain, workload.cliques, weights)
