"""What rows, questions and a budget would buy, before any data is touched: theorems applied.

`theory.planned` is what is known beforehand, `planner.mechanisms` gathers the mechanisms and certificates with
the width that a theorem gives each of them, and `planner.solve` ranks them, or solves for the number that was
left open.

It knows mechanisms through their theorems and their limits and sees no data: it may import `theory`,
`mechanism` and `privacy`, and no Curator. Start with `planner.solve.plan`.
"""
