"""Secrets of tokens and cookies: how they are drawn, what is kept of them, and how they are recognised."""

from __future__ import annotations

import hashlib
import re
import secrets

PREFIX = "us_"
_SECRET = re.compile(r"us_[A-Za-z0-9_-]{43}")


def fresh_secret() -> str:
    """The secret of a new token: 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(secret: str) -> bytes:
    """What is kept of a secret. It has 256 random bits, so that a quick hash is as good as a slow one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def holds_secret(text: str) -> bool:
    """Whether a text has something in it that looks like a token."""
    return _SECRET.search(text) is not None
