"""Terminal sessions in the documentation: run as they stand, compared with what the page shows, or written anew.

A page's `console` blocks are one session in a new folder. A line that begins with `$ ` is a command, whose status
must be 0, or what a comment `# status 2` at its end says; the lines below it are what it prints. A block after
``<!-- file: NAME -->`` is a file that the reader is asked to save. Numbers, spaces, lines of dashes and the remark
that a count is consistent with 0 may differ from run to run, as noise does; a line `…` stands for any lines.
Commands begin warm (`warm`): what a page shows does not depend on how Python starts.

    python tests/console_pages.py docs/tutorials/custodian.md     writes the page's outputs anew
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import warm

BLOCK = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n+)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(r"\b[0-9a-f]{64}\b|[-+−]?\d[\d,.]*(e-?\d+)?%?")
NEAR_ZERO = re.compile(r"\s+consistent with 0$")
STATUS = re.compile(r"\s+# status (\d+)$")
COMMAND_SECONDS = 120


@dataclass(frozen=True)
class Command:
    """One command of a session, and what the page says that it prints."""

    text: str
    shown: tuple[str, ...]

    @property
    def status(self) -> int:
        told = STATUS.search(self.text)
        return int(told[1]) if told else 0


@dataclass(frozen=True)
class SavedFile:
    """A file that the reader is asked to save."""

    name: str
    text: str


def steps(page: str) -> Iterator[Command | SavedFile]:
    """What a reader of the page does, in order."""
    for block in BLOCK.finditer(page):
        if block["file"]:
            yield SavedFile(block["file"], block["body"])
        elif block["language"] == "console":
            yield from commands(block["body"])


def commands(body: str) -> Iterator[Command]:
    """The commands of one block; a backslash carries one on to the next line."""
    text, shown, open_line = "", list[str](), False
    for line in body.splitlines():
        if open_line:
            text, open_line = f"{text}\n{line}", line.endswith("\\")
        elif line.startswith("$ "):
            if text:
                yield Command(text, tuple(shown))
            text, shown, open_line = line[2:], [], line.endswith("\\")
        else:
            shown.append(line)
    if text:
        yield Command(text, tuple(shown))


class Terminal:
    """A folder in which commands are run, with the program that is being tested on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        warm.program(programs / "python")
        warm.program(programs / "understudy", "-m", "understudy")
        source = Path(__file__).resolve().parent.parent / "src"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("UNDERSTUDY")},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(source),
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }

    def run(self, command: Command) -> list[str]:
        """The lines that a command prints; AssertionError where its status is another than the page says."""
        done = subprocess.run(
            STATUS.sub("", command.text),
            shell=True,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        printed = done.stdout.replace(str(self.folder), ".")
        assert done.returncode == command.status, f"{command.text}: status {done.returncode}\n{printed}"
        return [line.rstrip() for line in printed.rstrip().splitlines()]

    def take(self, step: Command | SavedFile) -> list[str]:
        if isinstance(step, Command):
            return self.run(step)
        (self.folder / step.name).write_text(step.text, encoding="utf-8")
        return []


def plain(line: str) -> str:
    """A line without what differs from run to run."""
    without = NEAR_ZERO.sub("", line)
    return re.sub(r"\s+", " ", re.sub(r"[-─━]{2,}", "--", NUMBER.sub("#", without))).strip()


def agree(shown: list[str], printed: list[str]) -> bool:
    """Whether printed lines are those shown, but for numbers and what `…` stands for."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(plain(line)) + r"\n"
        for line in shown
        if line.strip()
    )
    return re.fullmatch(pattern, "".join(f"{plain(line)}\n" for line in printed if line.strip())) is not None


def rewritten(page: str, folder: Path) -> str:
    """The page with what its commands print now; outputs that hold `…` and still agree are left as they are."""
    terminal, parts, end = Terminal(folder), list[str](), 0
    for block in BLOCK.finditer(page):
        parts.append(page[end : block.start()])
        end = block.end()
        text = block[0]
        if block["file"]:
            terminal.take(SavedFile(block["file"], block["body"]))
        elif block["language"] == "console":
            lines = list[str]()
            for command in commands(block["body"]):
                printed = terminal.run(command)
                shortened = "…" in command.shown and agree(list(command.shown), printed)
                lines += [f"$ {command.text}", *(command.shown if shortened else printed)]
            text = "\n".join(["```console", *lines, "```"])
        parts.append(text)
    return "".join([*parts, page[end:]])


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    for name in sys.argv[1:]:
        with TemporaryDirectory() as made:
            page = Path(name)
            page.write_text(rewritten(page.read_text("utf-8"), Path(made)), encoding="utf-8")
