"""The adaptive release: a graphical stand-in that learns round by round what a workload needs.

Each round finds out privately what the stand-in gets wrong, measures what pays, and refits. Public numbers
alone decide how the price is spent (`rule`) and which marginals are worth it (`pick`), by the same rule for
every table. `rounds` runs them, `learner` refits the tree to the evidence, `rows` is the stand-in with what did
not fit into the tree, `guard` is the last sweep over what was never measured, and `shrink` combines stand-in and
sweep cell by cell. Start with `adaptive.adaptive`.
"""
