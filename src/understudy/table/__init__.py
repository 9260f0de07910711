"""The sensitive table: where it is, how an engine encodes and counts it, and its exact counts.

`table.source` opens a file, a database, a cluster or a frame, `table.text_file` one of text in any encoding;
`table.intake` rewrites text as it is declared to be written, and `table.encode` turns each row into codes of
declared cells, inside the engine that holds it; `table.counts` and `table.cover` count many marginals in one
pass; `table.truth` holds the exact counts, for a Curator alone, and `table.coded_copy` keeps the codes of a file
where its custodian permits it. `table.draft` reads a table for its custodian, to draft a declaration
(`table.text_shape` finds out how a file is made, `table.survey` and `table.writing` what its columns hold,
`table.drafted_column` declares one of them, `table.draft_file` writes the draft),
`table.fit` counts how well the rows fit it, and `table.read_record` keeps what was found.

It may import `declaration`, `domain` and `query`, and knows neither budgets nor noise. What leaves this room is
exact: only a Curator, and a custodian's own commands `init` and `check`, may receive it. Start with
`table.source`.
"""
