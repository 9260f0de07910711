"""From a question to an answer: the one reader of questions, and answers as frozen values.

`answer.reader` reads a question once, without data: it then knows the marginals whose counts it needs, and
makes an answer of counts from whichever source has them. `answer.counts` is what every source says of counts:
the table through its Curator, a session, or a release. An `answer.answer.Answer`, or an
`answer.sql_answer.SqlAnswer` for a SELECT statement, says how far it can be from the table's own value and,
where a theorem gives that, from the population; what was charged; and where the value came from.
`answer.frames` turns answers into pandas, polars or Arrow frames.

Everything here is post-processing of released numbers, so the room may import what is public and below it
(`query`, `sql`, `declaration`, `privacy`) and never a table, a ledger or a source of noise. Start with
`answer.reader`.
"""
