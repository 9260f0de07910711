"""SCRAM-SHA-256 verifiers of tokens (RFC 5802, RFC 7677): what the Postgres door keeps to check a password.

A token's secret is known only while it is made, so its verifier is made then. The salt belongs to the name and is
a keyed hash of it: a stranger who tries a name that has no token is given a salt all the same.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import NamedTuple

ITERATIONS = 4096
"""What clients expect. A secret of 256 random bits cannot be guessed, however quick a guess is."""


class ScramVerifier(NamedTuple):
    """The stored key and the server key of one secret under one salt."""

    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, secret: str, salt: bytes) -> ScramVerifier:
        salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, ITERATIONS)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        return cls(hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))

    def as_text(self) -> str:
        return ":".join(base64.b64encode(key).decode() for key in self)

    @classmethod
    def from_text(cls, text: str) -> ScramVerifier:
        stored_key, server_key = (base64.b64decode(part) for part in text.split(":"))
        return cls(stored_key, server_key)


def salt_of(name: str, *, key: bytes) -> bytes:
    """The salt of a name, whether or not it has a token."""
    return hmac.digest(key, b"scram salt " + name.encode(), "sha256")[:16]
