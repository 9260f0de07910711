"""What a custodian declares about a table before anybody asks: the contents of ``understudy.yml``.

`declaration.declaration` has the values (source, domain, budget, neighbouring relation, unit, constraints,
limits); `declaration.file` reads them from YAML, and names line, field and remedy in every complaint
(`declaration.attributes` and `declaration.constraints` have the longest parts of it);
`declaration.intake` reads what is said about how text is written; `declaration.outline` is the text of a draft,
whose lines remember whether they were read off the data and must be reviewed.

Everything here is public text. The room may import the public universe and its questions (`domain`, `query`)
and the vocabulary of budgets (`privacy`), and opens no table. Start with `declaration.declaration.Declaration`.
"""
