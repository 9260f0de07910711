"""Interactive mechanisms as the literature states them: guess and check, median, truncation, online
construction.

Each file is one mechanism with the theorem that it carries out. Those that compare a guess with exact values
protect the validity of conclusions, not the privacy of rows, and a Curator opens that door only in a project
that declares `protect: validity`. The product's own interactive mechanism is in `sessions`; these are its
relatives, used by the reusable holdout, by audits and by people who study them.

The room may import stand-ins, mechanisms and a Curator, and never a table. Start with `lectures.online`.
"""
