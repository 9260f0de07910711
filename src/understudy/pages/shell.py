"""The shell of a page: one HTML file that fetches nothing, runs nothing, and is light or dark as its reader
is.
"""

from __future__ import annotations

import base64
from functools import cache
from hashlib import sha256
from importlib import resources

from understudy.pages.markup import escaped


@cache
def style() -> str:
    """The style sheet of every page."""
    return resources.files("understudy.pages").joinpath("style.css").read_text(encoding="utf-8")


@cache
def policy() -> str:
    """The content policy of a page: this very style sheet by its hash, and nothing else, from nowhere.

    A label that got through as markup could then still run no script, load no image and send no form.
    """
    digest = base64.b64encode(sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def beginning(kind: str) -> str:
    """How a page of that kind begins, for instance `release`: a file that begins so is one of ours."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="generator" content="Understudy, {escaped(kind)}">\n'
    )


def document(kind: str, title: str, *body: str, lead: str = "", made: str = "") -> str:
    """A whole page of parts that are markup; `title`, `lead` and `made` (the last line) are words."""
    first = f'<p class="lead">{escaped(lead)}</p>\n' if lead else ""
    last = f"<footer>{escaped(made)}</footer>\n" if made else ""
    return (
        f'{beginning(kind)}<meta http-equiv="Content-Security-Policy" content="{escaped(policy())}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{style()}</style>\n</head>\n<body>\n"
        f"<h1>{escaped(title)}</h1>\n{first}"
        + "\n".join(part for part in body if part)
        + f"\n{last}</body>\n</html>\n"
    )
