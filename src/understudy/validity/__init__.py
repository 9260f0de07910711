"""Scores that survive being optimised: a reusable holdout, a leaderboard, and the certificates behind them.

Tuning against one holdout set overfits it. `validity.holdout` answers a fixed number of adaptively chosen
scores so that all of them are within a certified width of the population, `validity.board` is that as files for
a contest, `validity.modes`, `validity.checking` and `validity.ladder` are the mechanisms it speaks through,
`validity.transfer` the theorems that turn a mechanism into a `validity.certificate`.

It imports `theory`, `mechanism`, `noise` and `planner` for the mathematics and `ledger` for its memory. The
sealed rows belong to the holdout itself; there is no Curator here. Start with `validity.holdout.Holdout`.
"""
