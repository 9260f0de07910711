"""Stand-ins: public models of the table that answer in its place.

Every stand-in can be projected onto a clique and so answers any linear query: dense multiplicative weights
(`standin.dense`), a graphical model on a junction tree (`standin.graphical`), the median of small databases
(`standin.median`), sums of simple functions (`standin.linear`), and a synthetic table (`standin.table`).
`standin.protocol` says what an update algorithm owes the constructions that drive it. Noisy marginals become a
histogram of largest entropy (`standin.maximum_entropy`) or a tree (`standin.from_interactions`), and bend single
tables that a tree has no room for (`standin.local_fit`).

A stand-in is made of released numbers only. Whatever it does is post-processing and costs nothing, which is why
this room may import `query`, `domain` and `theory` and must never see a table, a Curator or noise. Start with
`standin.protocol`.
"""
