"""SmallDB: one draw of the exponential mechanism among all databases of a few rows, made feasible and exact.

There are too many small databases to list, so they are counted by their error instead: by enumeration, along a
chain of thresholds, or over a tree of sets, whichever fits the class of queries. `classes` is the finite class
of queries, `shells` draws a level of error and then a database of that level, and `kernel` has the compiled
passes (numba, imported late). Start with `small_database.SmallDatabase`.
"""
