"""Bounded noise as a mode: never beyond its half-width, of the stated law, certified by Theorem T, and resumed."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.special import ndtr

from statistical import assert_at_most, assert_does_not_follow, assert_follows
from understudy.errors import RequestConflictError
from understudy.noise.samplers import SeededNoise
from understudy.theory.cosine_noise import cosine_width
from understudy.theory.elementary import elementary_cosine_at, elementary_normal_at
from understudy.theory.tilting import tilting_gauss_t, tilting_width_at
from understudy.validity import bounded, transfer
from understudy.validity.bounded import Bounded
from understudy.validity.certificate import TWICE_READ
from understudy.validity.choice import automatic, mode_of
from understudy.validity.holdout import Holdout
from understudy.validity.lattice import rounding
from understudy.validity.modes import Gaussian, Heard, SealedLook
from understudy_audit.analysts.others import blocks, boosting
from understudy_audit.validity import play

LABELS = np.random.default_rng(0).integers(0, 2, 2000)


def answers(mode, mean: float, count: int, seed: int = 3) -> np.ndarray:
    look, noise = SealedLook.at(mean, mode.rows), SeededNoise(seed)
    return np.array([mode.say(look, Heard(), noise=noise)["value"] for _ in range(count)])


def test_no_answer_is_further_from_the_sample_than_r():
    for rows, queries in ((100, 5), (2000, 50), (10**5, 10**4)):
        mode = Bounded(rows, queries, 0.05)
        off = np.abs(answers(mode, 0.4, 400) - 0.4)
        assert off.max() <= mode.r + rounding(rows)
        assert off.max() > 0.6 * mode.r
        assert mode.certificate.width > mode.r


def test_what_is_told_has_the_law_of_bounded_noise():
    """In cells of a fiftieth of r; noise 20% too small is seen, and so is a law of another shape."""
    mode = Bounded(2000, 50, 0.05)
    edges = np.linspace(-1, 1, 21)

    def law(z):
        z = np.clip(z, -1, 1)
        return 0.5 + z / 2 + np.sin(np.pi * z) / (2 * np.pi)

    off = (answers(mode, 0.5, 6000) - 0.5) / mode.r
    counts = np.histogram(np.clip(off, -1, 1), edges)[0].tolist()
    assert_follows(counts, np.diff(law(edges)).tolist())
    assert_does_not_follow(counts, np.diff(law(edges / 0.8)).tolist())
    assert_does_not_follow(counts, np.diff((1 + edges) / 2).tolist())


def test_the_certificate_names_theorem_t_its_readers_and_the_independent_check():
    found = Bounded(10**5, 10**4, 0.05).certificate
    assert found.width == pytest.approx(0.080142 + rounding(10**5), abs=1e-6)
    assert "Theorem T" in found.theorem
    assert TWICE_READ in found.assumptions
    assert "not peer reviewed" in TWICE_READ
    assert found.check is not None
    assert found.check.theorem == "Pinsker and the chain rule"
    assert found.width < found.check.width < 0.5
    told = found.as_dict()
    assert told["independent_check"] == {"width": found.check.width, "theorem": found.check.theorem}
    assert "independent check: ±" in str(found)
    r = cosine_width(10**5, 10**4, 0.05).r
    assert found.check.width == pytest.approx(elementary_cosine_at(10**5, 10**4, 0.05, r) + rounding(10**5))


def test_normal_noise_is_certified_by_theorem_t_unless_another_is_named():
    mode = Gaussian(10**5, 10**4, 0.05)
    found = mode.certificate
    assert found.width == pytest.approx(0.096224 + rounding(10**5), abs=1e-6)
    assert found.check is not None
    check = elementary_normal_at(10**5, 10**4, 0.05, mode.sigma) + rounding(10**5)
    assert found.check.width == pytest.approx(check)
    other = Gaussian(10**5, 10**4, 0.05, "cvar").certificate
    assert (other.theorem, other.check) == ("CVaR transfer", None)


@pytest.mark.parametrize("sigma", [0.005, 0.0104, 0.03])
def test_a_mutant_certificate_of_normal_noise_is_seen(sigma):
    """Against the union of its parts, recomputed: noise at 80%, the cap ignored, β dropped are each narrower."""
    n, k, beta = 10**5, 10**4, 0.05
    found = tilting_width_at(n, k, beta, sigma)
    shares = np.linspace(0.001, beta - 0.001, 400)

    def parts(sigma, k_of_cap, beta_of_t):
        def noise(share):  # the quantile of the largest of k, by bisection
            low, high = 0.0, 60.0
            for _ in range(200):
                middle = (low + high) / 2
                tail = -np.expm1(k * np.log1p(-2 * ndtr(-middle)))
                low, high = (middle, high) if tail > share else (low, middle)
            return sigma * high

        mu = np.sqrt(k_of_cap) / (n * sigma)
        return min(noise(s) + tilting_gauss_t(mu, n, beta_of_t(s)) for s in shares[::8])

    exact = parts(sigma, k, lambda share: beta - share)
    assert found <= exact * (1 + 1e-6)
    assert found >= exact * (1 - 2e-3)
    assert parts(sigma, 1, lambda share: beta - share) < found * (1 - 1e-2)  # the cap on Σ 1/σ² ignored
    assert parts(sigma, k, lambda share: 0.999) < found * (1 - 1e-4)  # β dropped


def test_automatic_takes_bounded_noise_and_keeps_the_ladder_where_noise_says_nothing():
    assert automatic(10**5, 10**4, 0.05).name == "bounded"
    assert automatic(2000, 100, 0.05, rejections=2).name == "realised"
    assert automatic(200, 10**6, 0.05).name == "ladder"
    assert automatic(10**5, 10**4, 0.05, earlier=True).text.startswith("gaussian cvar sigma")


def test_more_rows_narrow_it_and_a_larger_r_is_certified_too():
    mode = Bounded(2000, 50, 0.05)
    assert mode.width_with(2000) == pytest.approx(mode.certificate.width)
    assert mode.width_with(8000) < mode.certificate.width
    wider = transfer.bounded(2000, 50, 0.05, r=2 * mode.r)
    assert mode.r < mode.certificate.width < wider.width < inf
    assert transfer.bounded(2000, 50, 0.05, r=1e-9).width == 1


# ---- a file goes on under what it was opened under


@pytest.mark.parametrize("opened", ["auto", "gaussian"])
def test_a_file_of_earlier_times_goes_on_with_its_certificate(tmp_path, opened):
    path = tmp_path / "holdout.db"
    earlier = mode_of(opened, 2000, 20, 0.05, rejections=None, earlier=True)
    assert earlier.text.startswith("gaussian cvar sigma")  # as versions before Theorem T wrote it
    before = Holdout(None, LABELS, queries=20, mode=earlier, path=path)
    said = before.score_predictions(LABELS)
    before.close()
    resumed = Holdout(None, LABELS, queries=20, mode=opened, path=path)
    assert resumed.mode.text == earlier.text
    assert resumed.left == 19
    assert resumed.history()[0][1] == said
    assert resumed.certificate()["theorem"] == "CVaR transfer"
    assert resumed.score_predictions(LABELS).width == said.width


def test_a_file_goes_on_with_bounded_noise_and_refuses_other_terms(tmp_path):
    path = tmp_path / "holdout.db"
    first = Holdout(None, LABELS, queries=20, path=path)
    assert first.mode.name == "bounded"
    first.score_predictions(LABELS)
    first.close()
    again = Holdout(None, LABELS, queries=20, path=path)
    assert (again.mode.text, again.left) == (first.mode.text, 19)
    again.close()
    with pytest.raises(RequestConflictError):
        Holdout(None, LABELS, queries=30, path=path)
    with pytest.raises(RequestConflictError):
        Holdout(None, LABELS, queries=20, mode="gaussian", path=path)


# ---- attacks


@pytest.mark.parametrize("mode", ["bounded", "gaussian"])
def test_boosting_and_probing_by_blocks_stay_within_theorem_t(mode):
    """All answers of a run within their width, but for a share β of runs; the certificate is no narrower than they
    need: at a third of it, most runs fail."""
    runs, rows, queries = 40, 1000, 60
    attacked = mode_of(mode, rows, queries, 0.05, rejections=None)
    played = [play(boosting, attacked, queries, seed) for seed in range(runs)]
    played += [play(blocks, attacked, queries, seed) for seed in range(runs)]
    assert_at_most(sum(not one.covered for one in played), len(played), 0.05)
    short = attacked.certificate.width / 3
    assert sum(one.largest_error > short for one in played) > len(played) / 2


def test_a_width_that_is_too_narrow_is_seen_under_attack(monkeypatch):
    """The power of the coverage tests; noise that is too small is seen in the law of what is told, above."""
    mode = Bounded(500, 200, 0.05)
    monkeypatch.setattr(bounded, "width_of", lambda reach, t, rows: mode.r / 4)
    played = [play(boosting, mode, 200, seed) for seed in range(20)]
    with pytest.raises(AssertionError):
        assert_at_most(sum(not one.covered for one in played), 20, 0.05)
