"""The durable budget: what was spent on a table, by whom and on what, in a chain of entries that can be
verified.

A ledger writes a debit before data is touched and stores the answer after; the same request gets the stored
answer again. The total is a function of the list of entries, computed within the transaction that adds to it,
so that several processes cannot overspend together. `ledger.interface` says what every ledger promises; there
is one in memory and one in SQLite or Postgres, which share the arithmetic of `ledger.page`. What goes on over
several requests (a session, a sparse vector, a holdout, a release) keeps its steps in a `ledger.journal`.
`ledger.verifier` checks an exported ledger with Python's standard library alone, and shares no code with the
rest on purpose: a fault here must not hide itself there.

The room may import `privacy` (what an event costs) and `declaration` (which budget was declared), never a table
or a source of noise: a ledger knows prices, not data. Start with `ledger.interface`.
"""
