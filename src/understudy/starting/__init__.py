"""A table of which nobody declared anything: bounds, bins and keys are bought, and a declaration is written.

`start` is the whole of it: what it buys of which columns, in which order and at which price. `opening` finds the
ledger and how the file is read, `means` checks that the ledger can pay for all of it. `written` says
what a column is by how its texts are written, `described` makes the declaration of what was bought, and
`summary` a page. The room reaches the table through a `ColumnCurator` alone: everything here works on what was
released.
"""
