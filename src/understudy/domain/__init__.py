"""The public universe: attributes cut into finitely many declared cells, and their product.

`domain.attribute` has categories and booleans, `domain.bins` numbers and dates cut into consecutive bins,
`domain.instants` moments of time cut likewise and `domain.instant` how these are written and counted,
`domain.intake` and `domain.date_format` how a column's text is written, `domain.domain` the product of them
all, and `domain.plain` a domain as plain values. A domain is declared by a person and never inferred silently,
since the values of a sensitive column may themselves be private.

Nearly every room imports this one; it imports nothing but `errors`. Start with `domain.domain.Domain`.
"""
