from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from understudy.errors import ParameterError
from understudy.noise.samplers import SeededNoise
from understudy.theory.certificates import NOISE_CERTIFICATES
from understudy.theory.cvar import cvar_noise_gauss
from understudy.theory.table import COLUMNS
from understudy.validity import transfer
from understudy.validity.certificate import UNREVIEWED, Certificate, narrowest
from understudy.validity.checking import Checking, Realised
from understudy.validity.ladder import Ladder
from understudy.validity.modes import Gaussian, Heard, SealedLook
from understudy_textbook.composition import gdp_delta

PRINTED = {
    "c1": "lecture18", "c2": "bnsssu16", "d": "jlnrss20", "rz": "rogers20", "CVaR": "cvar", "DRIFT": "drift",
    "T": "tilting",
}  # fmt: skip

TABLE = """
1000 10 .3414 .2154 .1581 .1362\n1000 100 .5747 .4265 .3188 .2188\n1000 1000 1 .8451 .6421 .2714
1000 10000 1 1 1 .3082\n1000 100000 1 1 1 .3378\n10000 10 .1080 .0678 .0487 .0491
10000 100 .1817 .1324 .0961 .0897\n10000 1000 .3217 .2535 .1868 .1171\n10000 10000 .5836 .4844 .3633 .1355
10000 100000 1 .9417 .7171 .1496\n100000 10 .0341 .0214 .0153 .0172\n100000 100 .0575 .0418 .0299 .0357
100000 1000 .1017 .0796 .0573 .0504\n100000 10000 .1845 .1497 .1090 .0599\n100000 100000 .3378 .2803 .2071 .0669
1000000 10 .0108 .0068 .0048 .0062\n1000000 100 .0182 .0132 .0094 .0136\n1000000 1000 .0322 .0251 .0180 .0215
1000000 10000 .0584 .0472 .0338 .0264\n1000000 100000 .1068 .0879 .0634 .0299
"""
"""n, k, and the published widths of Rogers et al., CVaR, drift and the ladder at β = 0.05, four digits."""


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_the_twenty_situations(line):
    n, k, *printed = (float(word) for word in line.split())
    found = [transfer.gaussian(n, k, 0.05, theorem=name).width for name in ("rogers20", "cvar", "drift")]
    found.append(transfer.ladder(n, k, 0.05).width)
    assert [min(1, width) for width in found] == pytest.approx(printed, abs=6e-5)


@pytest.mark.parametrize(("column", "theorem"), PRINTED.items())
def test_a_given_noise_agrees_with_the_best_one(column, theorem):
    for n, k in ((10**4, 100), (10**5, 10**4))[theorem == "jlnrss20" :]:  # two nested searches take long
        sigma = transfer.best_sigma(n, k, 0.05, theorem)
        given = transfer.gaussian(n, k, 0.05, sigma=sigma, theorem=theorem).width
        assert given == pytest.approx(COLUMNS[column](n, k), rel=1e-4)
        for factor in (0.5, 2):
            assert transfer.gaussian(n, k, 0.05, sigma=factor * sigma, theorem=theorem).width > given * 0.9999


def test_the_headline():
    assert transfer.gaussian(1e5, 1e4, 0.05).width == pytest.approx(0.0962, abs=1e-4)
    assert transfer.bounded(1e5, 1e4, 0.05).width == pytest.approx(0.0801, abs=1e-4)
    assert transfer.gaussian(1e5, 1e4, 0.05, theorem="cvar").width == pytest.approx(0.1497, abs=1e-4)
    assert transfer.gaussian(1e5, 1e4, 0.05, theorem="drift").width == pytest.approx(0.109, abs=1e-4)
    assert transfer.discrete_gaussian(1e5, 1e4, 0.05).width == pytest.approx(0.0968, abs=1e-4)
    assert transfer.realised(1e5, 1e4, 20, 0.02, 0.05).width == pytest.approx(0.0540, abs=1e-4)
    assert transfer.universe(1e5, 1024, 0.05).width == pytest.approx(0.0597, abs=1e-4)


@pytest.mark.parametrize("theorem", NOISE_CERTIFICATES)
@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_a_certificate_covers_at_least_the_noise(theorem, sigma):
    """Of questions whose answer nobody can get wrong: the largest of k noises alone, by its exact law."""
    n, k, beta = 10**6, 100, 0.05
    width = transfer.gaussian(n, k, beta, sigma=sigma, theorem=theorem).width
    missed = 1 - (1 - 2 * stats.norm.sf(width / sigma)) ** k
    assert missed <= beta or width >= 1  # an answer is never further off than 1
    if theorem == "cvar":
        assert 1 - (1 - 2 * stats.norm.sf(0.8 * width / sigma)) ** k > beta  # a mutant


def test_any_privacy_curve_transfers():
    n, k, sigma = 10**5, 10**4, 0.0158
    mu = k**0.5 / (n * sigma)
    found = transfer.private(lambda eps: gdp_delta(eps, mu), cvar_noise_gauss(sigma, k, 0.05), 0.05).width
    assert found == pytest.approx(transfer.gaussian(n, k, 0.05, sigma=sigma, theorem="cvar").width, rel=1e-4)
    assert transfer.pure(0.5, 0.1, 0.05).width == pytest.approx(0.1 + 0.12435, abs=1e-5)


def test_assumptions_are_printed_with_the_number():
    found = transfer.gaussian(1e5, 1e4, 0.05, theorem="drift")
    assert UNREVIEWED in str(found)
    assert "±0.1090" in str(found)
    assert found.as_dict()["assumptions"] == list(found.assumptions)
    assert not found.vacuous


def test_a_union_pays_for_its_choice():
    def of(theorem):
        return lambda beta: transfer.gaussian(1e5, 1e4, beta, sigma=0.0158, theorem=theorem)

    alone, together = of("cvar")(0.05), narrowest([of("cvar"), of("rogers20")], 0.05)
    assert together.width == of("cvar")(0.025).width > alone.width
    assert "Rogers" in together.theorem
    assert together.beta == 0.05
    assert narrowest([of("cvar")], 0.05) == alone
    with pytest.raises(ParameterError):
        narrowest([], 0.05)


def test_unknown_theorems_are_refused():
    with pytest.raises(ParameterError, match="lecture18"):
        transfer.gaussian(1e5, 1e4, 0.05, theorem="luck")
    with pytest.raises(ParameterError, match="cvar"):
        Gaussian(100, 10, 0.05, "luck")


MODES = (
    Gaussian(2000, 50, 0.05),
    Checking(2000, 50, 0.05, 3),
    Realised(2000, 50, 0.05, 3),
    Ladder(2000, 50, 0.05),
)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_every_mode_keeps_to_one_protocol(mode):
    heard = Heard()
    said = mode.read(mode.say(SealedLook.at(0.7, mode.rows, 0.7), heard, noise=SeededNoise(1)), heard)
    assert heard.asked == 1
    assert 0 <= said.value <= 1
    assert said.width <= mode.certificate.width + 1e-12
    assert isinstance(mode.certificate, Certificate)
    assert mode.width_with(8000) < mode.certificate.width
    assert str(mode.queries) in mode.text


def test_a_right_guess_passes():
    """Guesses from as many rows are within the slack, all of 10,000 of them, nearly always."""
    draw = np.random.default_rng(0)
    one, two = (draw.binomial(10_000, 0.5, 10_000) / 10_000 for _ in range(2))
    assert (np.abs(one - two) > Checking(10_000, 10_000, 0.05).eta).sum() <= 3
