"""Questions as mathematics: linear queries, marginals, workloads, and the small question language.

A linear query is a clique (a few attributes) and a weight in [0, 1] for each of its cells; anything that can be
projected onto the clique can answer it (`query.projection`), be it the exact counts, a stand-in or a synthetic
table. `query.marginal` and `query.workload` gather queries, `query.expression` reads ``count age < 30 by
district``, within the sizes of `query.text_size`, and `query.family` lists named classes of queries;
`query.column` names and types the columns of answers. `query.residuals` takes marginals apart into what
each tells beyond its parts.

It imports `domain`, `rational` and `errors`: a question exists before any table does. Start with
`query.linear`.
"""
