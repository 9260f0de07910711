"""A model tuned on one holdout, a hundred times: every score still holds for the population.

Run: python examples/tuned_model.py     (needs scikit-learn)
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

import understudy as us

TRIALS = 100


def main() -> None:
    # A weak signal in five of fifty columns. The population is known here, so that promises can be checked.
    draw = np.random.default_rng(5)
    weights = np.r_[np.full(5, 0.4), np.zeros(45)]

    def sample(rows: int) -> tuple[np.ndarray, np.ndarray]:
        X = draw.normal(size=(rows, 50))
        return X, (X @ weights + draw.logistic(size=rows) > 0).astype(int)

    X, y = sample(500)  # to train on
    X_sealed, y_sealed = sample(20_000)  # to score on
    X_population, y_population = sample(200_000)  # nobody has this in life

    # The number of scores and the failure probability are fixed before the first score.
    holdout = us.Holdout(X_sealed, y_sealed, queries=TRIALS, beta=0.05)
    print(f"each of {TRIALS} scores tells its distance to the population, about ±{holdout.width:.3f}")

    # Tuning: every candidate is made from the best one so far, which is what overfits a plain holdout.
    best_score, best_columns = 0.0, np.arange(50)
    for _ in range(TRIALS):
        kept = best_columns[draw.random(best_columns.size) < 0.8]
        columns = np.union1d(kept, draw.integers(0, 50, size=3))
        model = LogisticRegression().fit(X[:, columns], y)
        score = holdout.score_predictions(
            model.predict(X_sealed[:, columns]), guess=model.score(X[:, columns], y)
        )
        if score.value > best_score:
            best_score, best_columns, best_model, best_width = score.value, columns, model, score.width
    truth = best_model.score(X_population[:, best_columns], y_population)
    print(f"{holdout.mode.name}: tuned on {best_columns.size} columns; scores left: {holdout.left}")
    print(f"the best score is within its width of the truth: {abs(best_score - truth) <= best_width}")

    # One score too many is refused.
    try:
        holdout.score_predictions(best_model.predict(X_sealed[:, best_columns]))
    except us.UnderstudyError as refused:
        print(f"refused: {refused}")


if __name__ == "__main__":
    main()
