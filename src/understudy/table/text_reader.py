"""How the embedded engine is told to read a file of text: the one statement that every look is made with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from understudy.table.file_view import quoted

READING = (
    "auto_detect = false, quote = '\"', escape = '\"', "
    # A malformed row must not stop the program: what an error says depends on the data.
    "ignore_errors = true, "
    # The parallel reader fails on a quoted line break, which is valid text.
    f"parallel = false, max_line_size = {16 << 20}, hive_partitioning = false"
)
"""How the engine reads a text file, beside its delimiter, its header and its columns."""

FORGIVING = "null_padding = true, strict_mode = false"
"""A line with too few fields, or too many, is a row."""

STRICT = "null_padding = false, strict_mode = true"
"""Such a line is an error: so they are counted."""


UNPACKABLE = (
    "the file cannot be unpacked: it is no gzip file, or it is damaged or cut off. Make or fetch it anew"
)
"""What is said of a packed file that is not whole."""


@dataclass(frozen=True, slots=True)
class TextReader:
    """What the engine is told about a file of text; `place` and all that stands in the statement are quoted."""

    place: str
    compression: str
    delimiter: str
    header: bool
    names: tuple[str, ...]

    def rows(self, how: str) -> str:
        """What stands after FROM."""
        named = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in self.names)
        header = "true" if self.header else "false"
        return (
            f"read_csv({self.place}, delim = {quoted(self.delimiter)}, columns = {{{named}}}, header = {header}, "
            f"{READING}, {how}, compression = '{self.compression}')"
        )

    def at(self, place: str) -> TextReader:
        """The same for another file, which is not packed, with records of the first one behind its header."""
        return replace(self, place=quoted(place), compression="none")
