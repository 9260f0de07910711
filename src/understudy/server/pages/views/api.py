"""The server's description of itself for programs, as a page that loads nothing from elsewhere."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from understudy.server.http.app import described
from understudy.server.pages.visitor import Visit

METHODS = ("get", "post", "put", "delete", "patch")


async def api(visit: Visit) -> Response:
    """Every address for programs: what it does, what it takes and what it refuses."""
    document = described(visit.request.app)
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document.get("paths", {}).items():
        for method, told in methods.items():
            if method in METHODS:
                group = (told.get("tags") or ["server"])[0]
                groups.setdefault(group, []).append(_operation(path, method, told))
    return visit.page(
        "api.html", "api", table="", groups=groups, title=document["info"]["title"],
        base=f"{visit.request.url.scheme}://{visit.request.headers['host']}",
    )  # fmt: skip


def _operation(path: str, method: str, told: dict[str, Any]) -> dict[str, Any]:
    body = told.get("requestBody", {}).get("content", {})
    schema = next(iter(body.values()), {}).get("schema")
    return {
        "path": path,
        "method": method.upper(),
        "summary": told.get("description") or told.get("summary", ""),
        "first": (told.get("description") or told.get("summary", ""))
        .split(". ")[0]
        .split("\n")[0]
        .rstrip("."),
        "parameters": [
            {
                "name": one["name"],
                "where": one["in"],
                "required": one.get("required", False),
                "kind": _kind(one.get("schema", {})),
            }
            for one in told.get("parameters", [])
        ],
        "fields": _fields(schema),
        "schema": "" if schema is None else json.dumps(schema, indent=2, ensure_ascii=False),
        "replies": [
            (status, reply.get("description", "")) for status, reply in told.get("responses", {}).items()
        ],
    }


def _fields(schema: dict[str, Any] | None) -> list[dict[str, str]]:
    """The fields of a body that is one JSON object."""
    if not schema or "properties" not in schema:
        return []
    required = set(schema.get("required", ()))
    return [
        {"name": name, "kind": _kind(one), "required": "required" if name in required else ""}
        for name, one in schema["properties"].items()
    ]


def _kind(schema: dict[str, Any]) -> str:
    if "type" in schema:
        return str(schema["type"])
    choices = [one.get("type", "") for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return " or ".join(str(one) for one in choices if one) or "any"
