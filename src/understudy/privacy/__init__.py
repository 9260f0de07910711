"""What was done and what it costs: events, prices, neighbouring relations, composition and budgets.

An event is a frozen record of what was done; a cost is worked out from it, in integers of a small unit, always
rounded up. The neighbouring relation says which tables a promise compares, and how far one person can move a
vector of counts: the sensitivity, on which every proof of privacy rests. Joint accounting takes the maximum
over pairs of neighbours of a sum, so that questions about different people cost as one. All of it is tested
against `understudy_textbook.stability`, which computes the whole curve δ(ε) of a finite mechanism.

All budget arithmetic of the house is here. The room imports `query` (what a count is of), `rational` and
`errors`, and neither draws noise nor knows a ledger. Start with `privacy.relation`, `privacy.price` and
`privacy.event`.
"""
