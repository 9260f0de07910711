"""What comes back: answers as frozen values, with their error, their price and their source.

An answer says how far it can be from the table's own value (`error`), from the population the rows were drawn
from where a theorem gives that, what was charged, and where the value came from. This room holds the values
that answers are made of and their form as pandas, polars or Arrow frames.

An answer is made of released numbers, so it may import what is public and below it (`query`, `privacy`,
`errors`) and never a table, a ledger's store or a source of noise. Start with `answer.answer.Answer`.
"""
