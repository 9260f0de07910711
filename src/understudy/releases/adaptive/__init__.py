"""The adaptive release: a graphical stand-in that learns round by round what a workload needs.

Each round finds out privately what the stand-in gets wrong, measures what pays, and refits. Public numbers
alone decide how the price is spent (`rule`) and which marginals are worth it (`pick`), by the same rule for
every table. `rounds` runs them, `top_up` says what of each residual they buy, `known_residuals` what is known of
it, `learner` refits the tree to that, `rows` is the stand-in with what did not fit into the tree, `sweep` measures
many marginals at once, in a round or at the end, and `shrink` combines stand-in and last sweep cell by cell. Start
with `adaptive.adaptive`.
"""
