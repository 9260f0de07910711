"""A desk: SQL on rows that are public already, in a process of its own that never opened a table.

What analysts write around released numbers, on a release's synthetic rows, or about the catalog that a server
shows to Postgres programs, is text from strangers. It is run by DuckDB in memory in a child process: a fresh
interpreter with a clean environment, without files, extensions or changeable settings, with a list of functions
that are allowed, and with limits on time, rows and memory beyond which the process is ended and replaced. Nothing
that it is told is private, and it cannot reach anything that is.

`Desk` is the pool of such processes, `Rows` what goes in and comes out.
"""
