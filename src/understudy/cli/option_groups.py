"""The options of commands that have many, in groups, for their help; what is in none comes under `Options`."""

from __future__ import annotations

GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "ask": {
        "Price and error": ("epsilon", "rho", "error", "noise", "beta", "dry_run", "yes"),
        "What is shown and written": ("everything", "out", "overwrite", "as_json"),
        "Who asks, and again": ("analyst", "request"),
        "In a session": ("session", "alpha", "queries"),
        "A release": ("release",),
        "At a server": ("url", "table", "why"),
    },
    "release": {
        "What is released": ("out", "workload", "rows", "within", "csv", "seed", "force"),
        "Price and error": ("epsilon", "delta", "alpha", "beta", "dry_run", "yes"),
        "How it is made": ("method", "target", "memory", "seconds", "device", "ranges", "max_cells", "option"),
        "A run and its name": ("name", "analyst", "abandon"),
    },
    "token new": {
        "What it is for": ("role", "doors", "agent", "read_only", "days"),
    },
    "plan": {
        "What is known": (
            "rows", "queries", "alpha", "epsilon", "delta", "key_delta", "beta", "universe", "project",
            "marginals", "vc",
        ),
        "What is wanted": ("promise", "guesses", "failures", "best_only"),
        "One purchase": ("ask", "keys", "columns", "error", "noise", "at_least", "neighbours"),
        "What is shown": ("table", "typical", "plot", "against", "overwrite", "as_json"),
    },
    "audit privacy": {
        "What is tested": ("mechanism", "effort", "samples"),
        "Long runs": ("resume", "hours", "workers", "seed"),
        "What is shown": ("out", "as_json"),
    },
    "holdout create": {
        "The labels": ("id_column", "label", "board"),
        "What is promised": ("queries", "metric", "mode", "theorem", "rejections", "public", "beta"),
    },
}  # fmt: skip
"""A command, its groups in order, and the parameters in each."""
