"""The design of every page that Understudy writes: one shell and style, and plots as SVG.

A page is one file that fetches nothing and runs no script: a strict content policy in its head says so to the
browser. Colours are variables of one style sheet ("style.css"), light and dark by the reader's own setting,
so that a plot drawn once fits both. `shell` makes a document of parts, `markup` the parts (tables that fit a
telephone, facts, banners, words explained), `lettering` measures text, `bars` and `heat` draw. `notebook` makes
the smaller views of objects in a notebook, in the same colours. Everything
that was not written in this package is escaped by the functions that take it; what they return is markup and
is put together as it is.

The room knows nothing of tables, budgets or releases, and may import `errors` alone. Start with `shell`.
"""
