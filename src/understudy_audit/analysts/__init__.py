"""Adaptive analysts who try to make a mechanism's answers wrong, and the game that they play.

`game` has the referee, who knows the population; `correlation` and `others` have the attacks of the literature,
from majority votes of weak correlations to boosting and fingerprinting. Start with `game`.
"""
