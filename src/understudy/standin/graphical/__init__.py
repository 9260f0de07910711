"""A graphical model on a junction tree: the maximum-entropy table that agrees with marginals that were
measured.

`elimination` and `tree` choose the cliques, `belief` passes messages between them, `model` is the stand-in,
`fit` and `descent` fit it to noisy marginals, `answer` answers queries by variable elimination, `sample` draws
synthetic rows. Memory grows with the largest clique and not with the universe. Start with `model`.
"""
