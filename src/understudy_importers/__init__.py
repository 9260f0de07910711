"""Descriptions of tables that others have written, as drafts of a declaration.

`smartnoise` reads SmartNoise metadata, `frictionless` table schemas and data packages, `formats` decides which
of them a file is, and `asking` asks the custodian at a terminal for what the description lacks.

A description is public text: nothing here opens the table it describes. It is a guest of the core, may import
`declaration`, `domain` and `errors`, and is imported by `understudy init --from` alone. Start with
`formats.read`.
"""
