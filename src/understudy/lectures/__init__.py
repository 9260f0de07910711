"""The algorithms of the lecture notes, by name, for people who read the notes.

Each is a client of a Curator: what looks at people is charged before it looks, and what only protects the
conclusion (GuessAndCheck, MedianMechanism, Truncation) runs in projects that declare `protect: validity`. Releases
and sessions use the same stand-ins (`understudy.release`, `understudy.session`).

| note | algorithm | here |
|---|---|---|
| Lecture 4 | GuessAndCheck(η, m) | `GuessAndCheck` with `CheckTerms`; guesses from `OtherData`, `WeightsGuess` |
| Lecture 4 | MedianMechanism | `MedianMechanism`; behind the sparse vector, for privacy, `private_median` |
| Lecture 4 | Laplace noise | `understudy.mechanism.laplace.LaplaceMechanism` |
| Lectures 9-10 | SmallDB | `SmallDatabase` over a `SmallDatabaseClass`; queries from `understudy.query.family` |
| Lectures 9-10 | Net mechanism | `NetMechanism` |
| Lecture 7 | Iterative Construction (IC) | `understudy.release(…, method="ic")`; online, `OnlineConstruction` |
| Lecture 7 | private multiplicative weights | `PrivateMultiplicativeWeights` |
| Lecture 7 | multiplicative weights, a DUA | `MultiplicativeWeights`, `ProjectedWeights`, `ConsistentWeights` |
| Lecture 7 | median, a DUA | `MedianUpdate`, `SampledMedianUpdate` |
| Lecture 7 | Frieze and Kannan's, a DUA | `FriezeKannan` |
| Lecture 7 | multiplicative weights on a graphical model | `GraphicalWeights` |
| Lecture 7 | private distinguisher | `understudy.releases.distinguisher`, also by a `StatisticalLearner` |
| Lecture 18 | exponential mechanism | `understudy.mechanism.exponential.ExponentialMechanism` |
| Lecture 18 | the Monitor | `monitor` |
| compression | rounded exact means | `Truncation` |

A DUA is a database update algorithm: what a construction asks to mend its stand-in by one answer. The bounds are
functions of `understudy_textbook`, one file per note; docs/textbook.md lists every statement with its test.

>>> from fractions import Fraction
>>> import pyarrow, understudy as us
>>> from understudy.declaration.file import parse
>>> declared = parse('''
... understudy: 1
... name: poll
... source: poll.csv
... protect: validity
... budget: {epsilon: 1}
... attributes: {vote: {type: category, values: ["yes", "no"]}}
... ''')
>>> poll = us.Project.frame(pyarrow.table({"vote": ["yes"] * 5200 + ["no"] * 4800}), declared)
>>> terms = us.lectures.CheckTerms(eta=Fraction(1, 20), queries=1000, beta=Fraction(1, 20), rejections=5)
>>> answer = us.lectures.GuessAndCheck(poll, terms).check("share vote = 'yes'", 0.5)
>>> answer.accepted, round(answer.population_error, 3)
(True, 0.103)
"""

from __future__ import annotations

from understudy.lectures.guess_and_check import CheckTerms, GuessAndCheck
from understudy.lectures.guessers import (
    ConstantGuess,
    GuessFunction,
    MedianGuess,
    OtherData,
    SampledMedianGuess,
    WeightsGuess,
)
from understudy.lectures.median import MedianMechanism, private_median
from understudy.lectures.monitor import monitor
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import OnlineTerms, practical_terms, theorem_terms
from understudy.lectures.private_weights import PrivateMultiplicativeWeights
from understudy.lectures.truncation import Truncation
from understudy.mechanism.net import NetMechanism
from understudy.mechanism.small_database.classes import DistinctQueries as SmallDatabaseClass
from understudy.mechanism.small_database.small_database import SmallDatabase
from understudy.standin.graphical.weights import GraphicalWeights
from understudy.standin.linear import FriezeKannan
from understudy.standin.median.median import MedianUpdate
from understudy.standin.median.sampled import SampledMedianUpdate
from understudy.standin.multiplicative import ConsistentWeights, MultiplicativeWeights, ProjectedWeights

__all__ = [
    "CheckTerms",
    "ConsistentWeights",
    "ConstantGuess",
    "FriezeKannan",
    "GraphicalWeights",
    "GuessAndCheck",
    "GuessFunction",
    "MedianGuess",
    "MedianMechanism",
    "MedianUpdate",
    "MultiplicativeWeights",
    "NetMechanism",
    "OnlineConstruction",
    "OnlineTerms",
    "OtherData",
    "PrivateMultiplicativeWeights",
    "ProjectedWeights",
    "SampledMedianGuess",
    "SampledMedianUpdate",
    "SmallDatabase",
    "SmallDatabaseClass",
    "Truncation",
    "WeightsGuess",
    "monitor",
    "practical_terms",
    "private_median",
    "theorem_terms",
]
