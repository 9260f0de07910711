"""A question as Python, as SQL and as a call of curl, to be copied from the page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from understudy.answer.reader import is_sql


def copies(base: str, table: str, question: str, terms: Mapping[str, Any]) -> dict[str, str]:
    """The same question for programs, by the name of what it is written in.

    `base` is the address of this server, `terms` the price or the error that was given, and the noise.
    There is SQL where the question is SQL.
    """
    known = ("epsilon", "rho", "error", "in_session", "noise")
    price = {name: terms[name] for name in known if terms.get(name) is not None}
    given = "".join(f", {name}={value!r}" for name, value in price.items())
    body = json.dumps({"question": question, **price}, ensure_ascii=False)
    address = f"{base}/v1/tables/{quote(table, safe='')}/ask"
    told = {
        "Python": (
            "import understudy as us\n\n"
            f"server = us.connect({base!r})  # the token is read from UNDERSTUDY_TOKEN\n"
            f"answer = server.ask({question!r}, table={table!r}{given})\n"
        ),
        "curl": (
            f"curl {shlex.quote(address)} \\\n"
            '  -H "Authorization: Bearer $UNDERSTUDY_TOKEN" -H "Content-Type: application/json" \\\n'
            f"  -d {shlex.quote(body)}\n"
        ),
    }
    if is_sql(question):
        told["SQL"] = question
    return told
