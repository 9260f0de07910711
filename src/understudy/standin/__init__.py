"""Stand-ins: public models of the table that answer in its place.

Every stand-in can be projected onto a clique and so answers any linear query: dense multiplicative weights
(`standin.dense`), a graphical model on a junction tree (`standin.graphical`), the median of small databases
(`standin.median`), sums of simple functions (`standin.linear`), and a synthetic table (`standin.table`).
`standin.protocol` says what an update algorithm owes the constructions that drive it.

A stand-in is made of released numbers only. Whatever it does is post-processing and costs nothing, which is why
this room may import `query`, `domain` and `theory` and must never see a table, a Curator or noise. Start with
`standin.protocol`.
"""
