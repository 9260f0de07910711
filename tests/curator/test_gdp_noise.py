"""A budget that is kept in GDP draws rounded normal noise, whose μ² is exact; others draw what they drew."""

from __future__ import annotations

import pandas as pd
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import UNITS
from understudy.privacy.event import GaussianNoise, RoundedNormal, unversioned

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: replace
budget: {{epsilon: {epsilon}, delta: 1e-6{kept}}}
attributes:
  sex: {{type: category, values: [F, M]}}
"""
FRAME = pd.DataFrame({"sex": ["F", "M"] * 500})


def project(kept: str, epsilon: float = 1) -> us.Project:
    return us.Project.frame(FRAME, parse(TEXT.format(kept=kept, epsilon=epsilon)), noise=SeededNoise(3))


@pytest.mark.parametrize(
    ("kept", "kind"),
    [("", GaussianNoise), (", filter: renyi", GaussianNoise), (", filter: gdp", RoundedNormal)],
)
def test_which_noise_a_price_in_rho_buys(kept: str, kind: type) -> None:
    p = project(kept)
    p.ask("count sex = F", error=60, request="one")
    debit = p.ledger.find("one")
    assert debit is not None
    assert type(unversioned(debit.event)) is kind
    assert p.quote("count sex = F", error=60).noise == "gaussian"


def test_a_gdp_budget_pays_for_a_ninth_more_of_the_same_answers() -> None:
    """At (1, 10⁻⁶) with a reserve of 3%: 11.57%."""
    usual, gdp = project(""), project(", filter: gdp")
    shares = [p.quote("count by sex", error=60).share for p in (usual, gdp)]
    assert shares[0] / shares[1] == pytest.approx(1.1157, abs=2e-4)


def test_noise_of_a_few_steps_costs_its_own_mu_and_no_surcharge() -> None:
    """Where discrete noise is priced above l2²/(2σ²), rounded normal noise is not."""
    p = project(", filter: gdp", epsilon=30)
    p.ask("count sex = F", error=2, request="small")
    debit = p.ledger.find("small")
    assert debit is not None
    event = unversioned(debit.event)
    assert isinstance(event, RoundedNormal)
    assert event.variance < 2
    assert debit.cost.units == -(-event.l2_squared / (2 * event.variance) * UNITS // 1)
