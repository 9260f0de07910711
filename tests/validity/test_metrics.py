"""Metrics with public bounds: what they are, which target they take, and that their intervals hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.metrics import f1_score, log_loss, mean_absolute_error, r2_score, root_mean_squared_error

import understudy as us
from understudy.errors import HandleClosedError, ParameterError, RefusedError, RequestConflictError
from understudy.noise.samplers import SeededNoise
from understudy.validity.bounded import Bounded
from understudy.validity.metrics import METRICS, metric_of
from understudy.validity.propagated import explained_variance, harmonic_mean, root_mean_square

DRAW = np.random.default_rng(7)
X = DRAW.normal(size=(30_000, 2))
Y = 50 + 12 * X[:, 0] + DRAW.normal(size=30_000) * 6
TRAIN, SEALED = slice(0, 6_000), slice(6_000, None)
MODEL = LinearRegression().fit(X[TRAIN], Y[TRAIN])
UNIT = st.floats(0, 1)


def holdout(metric, queries=3, **more):
    return us.Holdout(X[SEALED], Y[SEALED], queries=queries, metric=metric, noise=SeededNoise(3), **more)


# ---- what they are


def test_bounded_metrics_are_scikit_learns_where_nothing_is_clipped():
    truth, predicted = Y[:500], MODEL.predict(X[:500])
    wide = us.metrics.mae(scale=1000)
    assert 1000 * (1 - wide.means(truth, predicted)[0]) == pytest.approx(
        mean_absolute_error(truth, predicted)
    )
    root = us.metrics.rmse(scale=1000)
    assert 1000 * (1 - root.value(root.means(truth, predicted))) == pytest.approx(
        root_mean_squared_error(truth, predicted)
    )
    part = us.metrics.r2(low=-50, high=150)
    assert part.value(part.means(truth, predicted)) == pytest.approx(r2_score(truth, predicted))
    labels, guessed = truth > 50, predicted > 55
    for positive in (True, False):
        of_label = us.metrics.f1(positive=positive)
        assert of_label.value(of_label.means(labels, guessed)) == pytest.approx(
            f1_score(labels, guessed, pos_label=positive)
        )
    likely = np.column_stack([1 - (p := np.clip(guessed * 0.8 + 0.1, 0, 1)), p])
    assert 5 * (1 - metric_of("log_loss").means(labels, likely)[0]) == pytest.approx(log_loss(labels, likely))


def test_no_row_counts_for_more_than_the_scale():
    truth = np.array([0.0, 0.0, 0.0, 0.0])
    predicted = np.array([1.0, 1e300, np.nan, -np.inf])
    assert us.metrics.mae(scale=2).of(truth, predicted).tolist() == [0.5, 0, 0, 0]
    assert us.metrics.rmse(scale=2).parts[0].of(truth, predicted).tolist() == [0.75, 0, 0, 0]
    assert us.metrics.r2(low=-1, high=1).parts[0].of(truth, predicted).tolist() == [0.75, 0.75, 0, 0.75]


@pytest.mark.parametrize(
    "text",
    ["accuracy", "brier", "log_loss", "log_loss(cap=2.5)", "mae(scale=10)", "rmse(scale=0.25)",
     "r2(low=-1, high=100)", "r2(low=0, high=1, clip=0.5)",
     "f1(positive='yes')", "f1", "quantile_loss(quantile=0.9, scale=10)", "auc"],
)  # fmt: skip
def test_a_metric_is_written_as_text_and_read_back(text):
    assert metric_of(text).text == text
    assert metric_of(metric_of(text).text).text == text


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("mae", r"mae\(scale=10\)"), ("r2(low=0)", r"r2\(low=0, high=100\)"), ("accuracy(scale=3)", "write accuracy"),
     ("f1(label=1)", r"f1\(positive=1\)"), ("rmse(scale=-1)", "positive"), ("r2(low=1, high=1)", "bounds"),
     ("r2(low=0, high=1, clip=2)", "at most high - low"),
     ("recall", "there are: accuracy"), ("mae(scale=__import__('os'))", "no metric"), ("mae(10)", "no metric")],
)  # fmt: skip
def test_what_is_no_metric_says_what_to_write(text, remedy):
    with pytest.raises(ParameterError, match=remedy):
        metric_of(text)


# ---- which target they take


def test_a_continuous_target_is_refused_by_metrics_of_labels_with_what_to_write():
    for metric in (None, "accuracy", "brier", "log_loss", "f1", "auc"):
        with pytest.raises(ParameterError, match=r"y is continuous.*`metric='mae\(scale=10\)'`"):
            holdout(metric)


def test_labels_are_inferred_and_amounts_are_asked_about():
    labels = np.arange(4000) % 3
    for y in (labels, labels.astype(float), labels.astype(str), labels > 1, labels.astype(object)):
        assert us.Holdout(None, y, queries=2).metric.text == "accuracy"
    amounts = np.arange(4000) % 700
    with pytest.raises(ParameterError, match=r"700 distinct numbers.*`metric='accuracy'`.*mae"):
        us.Holdout(None, amounts, queries=2)
    assert us.Holdout(None, amounts, queries=2, metric="accuracy").metric.text == "accuracy"
    assert us.Holdout(None, amounts, queries=2, metric="mae(scale=700)").metric.name == "mae"


def test_numbers_are_needed_where_numbers_are_compared():
    with pytest.raises(ParameterError, match="y is text"):
        us.Holdout(None, np.array(["a", "b"] * 2000), queries=2, metric="mae(scale=1)")
    with pytest.raises(ParameterError, match="missing values"):
        us.Holdout(None, np.array([0.5, np.nan] * 2000), queries=2, metric="rmse(scale=1)")


def test_f1_is_of_one_label():
    two = us.Holdout(None, np.array(["no", "yes"] * 2000), queries=2, metric="f1")
    assert two.metric.text == "f1(positive='yes')"
    with pytest.raises(ParameterError, match="is of one label, and there are 3"):
        us.Holdout(None, np.arange(4000) % 3, queries=2, metric="f1")
    assert (
        us.Holdout(None, np.arange(4000) % 3, queries=2, metric="f1(positive=0)").metric.text
        == "f1(positive=0)"
    )


# ---- intervals


def around(mean, below, above):
    return max(mean - below, 0.0), min(mean + above, 1.0)


ROWS = st.lists(st.tuples(UNIT, UNIT), min_size=1, max_size=6)
SLACK = st.tuples(*[st.floats(0, 0.4) for _ in range(6)])


@settings(max_examples=150, deadline=None)
@given(ROWS, SLACK, st.sampled_from([0.25, 1.0]))
def test_intervals_hold_for_every_table_whose_means_are_in_theirs(rows, slack, clip):
    """Brute force over tables: the score of the table itself lies in the interval of intervals of its means."""
    y, p = np.array(rows).T
    labels, guessed = y > 0.5, p > 0.5
    for metric, truth, predicted, score in (
        (us.metrics.rmse(scale=clip), y, p, 1 - np.sqrt(np.mean(np.minimum(abs(y - p), clip) ** 2)) / clip),
        (us.metrics.r2(low=0, high=1, clip=clip), y, p, r2_of(y, p, clip)),
        (us.metrics.f1(positive=True), labels, guessed, f1_of(labels, guessed)),
    ):
        ends = [around(m, *slack[2 * i : 2 * i + 2]) for i, m in enumerate(metric.means(truth, predicted))]
        low, high = metric.interval(ends)
        assert low - 1e-7 <= score <= high + 1e-7, metric.text
        assert 0 <= low <= high <= 1


def f1_of(labels, guessed):
    hits = int((labels & guessed).sum())
    return 2 * hits / int(labels.sum() + guessed.sum()) if hits else 0.0


def r2_of(y, p, clip):
    """R² by exact fractions, no lower than 0; not asked for where rounding cannot tell the variance from 0."""
    exact_y, exact_p = [Fraction(v) for v in y.tolist()], [Fraction(v) for v in p.tolist()]
    centre = sum(exact_y) / len(exact_y)
    spread = sum((v - centre) ** 2 for v in exact_y)
    off = sum(min(abs(v - w), Fraction(clip)) ** 2 for v, w in zip(exact_y, exact_p, strict=True))
    assume(spread == 0 or spread > Fraction(1, 10**6))
    return max(float(1 - off / spread), 0.0) if spread else 0.0


def test_intervals_are_no_wider_than_what_means_in_them_reach():
    """Each end is reached by some feasible means: brute force over a grid of them."""
    grid = [i / 100 for i in range(101)]
    t, right = (0.30, 0.40), (0.70, 0.80)
    reached = [
        2 * a / (2 * a + 1 - b) for a in grid for b in grid if t[0] <= a <= t[1] and right[0] <= b <= right[1]
    ]
    assert harmonic_mean([t, right]) == pytest.approx((min(reached), max(reached)))
    q, centre, square = (0.9, 0.95), (0.4, 0.55), (0.6, 0.8)
    reached = [
        max(1 - (1 - m) / (c / 4 - (a - 0.5) ** 2), 0)
        for m in q for a in grid for c in grid
        if centre[0] <= a <= centre[1] and square[0] <= c <= square[1] and c / 4 > (a - 0.5) ** 2
    ]  # fmt: skip
    assert explained_variance([q, centre, square]) == pytest.approx((min(reached), max(reached)))
    assert root_mean_square([(0.19, 0.36)]) == pytest.approx((0.1, 0.2))


def test_a_variance_that_may_be_nothing_leaves_the_score_open():
    assert explained_variance([(0.9, 1.0), (0.4, 0.6), (0.02, 0.3)]) == (0, 1)
    assert explained_variance([(0.9, 1.0), (0.0, 0.0), (1.0, 1.0)]) == (0, 0)
    assert harmonic_mean([(0.0, 0.0), (0.2, 0.9)]) == (0, 0)


# ---- with certificates


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        (us.metrics.mae(scale=30), lambda y, p: 1 - np.minimum(abs(y - p), 30).mean() / 30),
        (us.metrics.rmse(scale=30), lambda y, p: 1 - np.sqrt(np.minimum((y - p) ** 2, 900).mean()) / 30),
        (
            us.metrics.r2(low=0, high=100, clip=30),
            lambda y, p: r2_score(np.clip(y, 0, 100), np.clip(p, 0, 100)),
        ),
    ],
    ids=["mae", "rmse", "r2"],
)
def test_a_score_is_within_its_interval_of_the_population(metric, score):
    draw = np.random.default_rng(8)
    features = draw.normal(size=(100_000, 2))
    truth = score(50 + 12 * features[:, 0] + draw.normal(size=100_000) * 6, MODEL.predict(features))
    made = holdout(metric)
    told = made.score(MODEL)
    assert told.low <= truth <= told.high
    assert told.low <= told.value <= told.high
    assert max(told.value - told.low, told.high - told.value) == pytest.approx(told.width)
    assert made.left == 2
    assert "continuous" not in str(made.certificate())
    if metric.scale is not None:
        low, high = told.loss_interval
        assert low <= told.loss <= high
        assert told.loss == pytest.approx(metric.scale * (1 - told.value))
        assert told.as_dict()["loss"] == told.loss


def test_every_mean_is_a_query_of_the_certificate():
    assert holdout("mae(scale=30)", queries=10).mode.queries == 10
    assert holdout("rmse(scale=30)", queries=10).mode.queries == 10
    assert (
        holdout("r2(low=0, high=100)", queries=10).mode.queries == 12
    )  # the mean of y and of its square, once
    labels = Y[SEALED] > 50
    f1 = us.Holdout(None, labels, queries=10, metric="f1", noise=SeededNoise(1))
    assert f1.mode.queries == 20
    assert f1.width == Bounded(24_000, 20, 0.05).certificate.width
    for left in range(9, -1, -1):
        assert f1.score_predictions(labels).left == f1.left == left
    with pytest.raises(HandleClosedError, match="all 10 scores"):
        f1.score_predictions(labels)
    assert "each score is a function of 2 such means" in f1.certificate()["assumptions"][7]
    assert "the first asks for" in str(holdout("r2(low=0, high=100)").promise)
    assert holdout("mae(scale=30)").promise == holdout("mae(scale=30)").mode.certificate


def test_means_of_the_target_are_bought_with_the_first_score_alone(tmp_path):
    made = us.Holdout(
        None, Y[SEALED], queries=3, metric="r2(low=0, high=100, clip=30)", path=tmp_path / "h.db"
    )
    first = made.score_predictions(MODEL.predict(X[SEALED]))
    steps = made._journal.all()
    assert (len(steps[0]["once"]), len(steps[0]["parts"])) == (2, 1)
    second = made.score_predictions(np.full(24_000, 50.0))
    assert [len(step["once"]) for step in made._journal.all()] == [2, 0]
    again = us.Holdout(
        None, Y[SEALED], queries=3, metric="r2(low=0, high=100, clip=30)", path=tmp_path / "h.db"
    )
    assert [score.value for _, score in again.history()] == [first.value, second.value]
    assert [score.interval for _, score in again.history()] == [first.interval, second.interval]
    third = again.score_predictions(MODEL.predict(X[SEALED]))
    assert min(first.value, third.value) > 0.5 > second.value
    assert made.left == 0
    with pytest.raises(RequestConflictError):  # other bounds are another promise
        us.Holdout(None, Y[SEALED], queries=3, metric="r2(low=0, high=100, clip=40)", path=tmp_path / "h.db")


def test_modes_with_guesses_check_each_mean():
    labels = Y[SEALED] > 50
    made = us.Holdout(X[SEALED], labels, queries=4, metric="f1", mode="check", rejections=2)
    predicted = X[SEALED][:, 0] > 0
    means = made.metric.means(labels[:2000], predicted[:2000])
    told = made.score_predictions(predicted, guess=means)
    assert told.source == "checked"
    assert told.low <= f1_score(labels, predicted) <= told.high
    with pytest.raises(ParameterError, match="one guess cannot say all"):
        made.score_predictions(predicted, guess=0.5)
    with pytest.raises(ParameterError, match="2 means, and 3 are guessed"):
        made.score_predictions(predicted, guess=(0.5, 0.5, 0.5))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        made.score_predictions(predicted, guess=(0.5, 1.5))
    assert made.left == 3
    wrong = (0.9, 0.1)
    assert made.score_predictions(predicted, guess=wrong).source == "measured"
    for _ in range(2):  # the third wrong guess halts it, in the middle of a score
        with pytest.raises(HandleClosedError, match="more than 2 guesses"):
            made.score_predictions(predicted, guess=wrong)
    assert len(made.history()) == 2


def test_a_root_goes_with_the_ladder_and_several_means_do_not():
    best = us.Holdout(None, Y[SEALED], queries=5, metric="rmse(scale=30)", mode="ladder")
    poor = best.score_predictions(np.full(24_000, 50.0))
    good = best.score_predictions(MODEL.predict(X[SEALED]))
    again = best.score_predictions(np.full(24_000, 50.0))
    assert (again.value, again.repeats) == (good.value, True)
    assert good.value > poor.value
    assert good.low <= 1 - 6 / 30 <= good.high
    with pytest.raises(ParameterError, match="running best of one"):
        holdout("r2(low=0, high=100)", mode="ladder")
    with pytest.raises(RefusedError, match="would say nothing"):  # and `auto` does not fall back on it
        us.Holdout(None, Y[:200], queries=5000, metric="r2(low=0, high=100)")


def test_a_guess_of_a_root_is_one_of_its_score():
    made = us.Holdout(None, Y[SEALED], queries=3, metric="rmse(scale=30)", mode="check", rejections=1)
    assert made.score_predictions(MODEL.predict(X[SEALED]), guess=0.8).source == "checked"


def test_an_estimator_that_fails_at_the_rows_scores_nothing():
    made = us.Holdout(X[SEALED], Y[SEALED], queries=2, metric="r2(low=0, high=100)", noise=SeededNoise(2))
    looks = made._sealed.all_wrong(made.metric, steps=made._steps, guess=None)
    assert looks[0].mean == 0
    assert looks[1].mean == pytest.approx(np.clip(Y[SEALED], 0, 100).mean() / 100)
    assert made._tell(looks, {"way": "frozen"}).value == 0


def test_a_file_of_version_0_1_goes_on_under_its_own_terms(tmp_path, monkeypatch):
    settings = {"queries": 3, "path": tmp_path / "h.db"}
    labels = np.arange(24_000) % 2
    with monkeypatch.context() as former:  # 0.1 named a metric without its parameters
        former.setattr("understudy.validity.holdout.promise_of", lambda ledger, name, sealed, metric, mode: (
            f"holdout of {sealed.persons} rows #{sealed.digest} by {metric.name}: {mode.text}"
        ))  # fmt: skip
        us.Holdout(None, labels, metric="log_loss(cap=3)", **settings).score_predictions(np.full(24_000, 0.5))
    assert us.Holdout(None, labels, metric="log_loss(cap=3)", **settings).left == 2
    new = us.Holdout(None, labels, metric="log_loss(cap=3)", queries=3, path=tmp_path / "new.db")
    assert new.left == 3
    with pytest.raises(RequestConflictError):
        us.Holdout(None, labels, metric="log_loss(cap=4)", queries=3, path=tmp_path / "new.db")


def test_every_metric_is_listed():
    assert set(METRICS) == {"accuracy", "brier", "log_loss", "f1", "mae", "rmse", "r2", "quantile_loss"}
