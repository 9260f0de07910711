"""SCRAM-SHA-256 of a server (RFC 5802, RFC 7677) with several tokens for each name.

A name has one salt, whether or not it has a token, and a stranger's proof is tried on a verifier that fits
nothing: what is sent, and how long it takes, does not tell whether a name exists. The proof is tried on each token
of the name; which of them it was says what the connection may do.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence

from understudy.server.scram import ITERATIONS, ScramVerifier

MECHANISM = "SCRAM-SHA-256"

_FIRST = re.compile(r"([ny]),(?:a=[^,]*)?,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]{1,256})(?:,.*)?)", re.S)
_FINAL = re.compile(
    r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,(?!p=).*)?),p=([A-Za-z0-9+/=]+)", re.S
)


class ScramError(Exception):
    """A message that SCRAM does not have in this place."""


class ScramExchange:
    """One exchange: `first`, then `final`."""

    def __init__(self, salt: bytes, verifiers: Sequence[ScramVerifier]) -> None:
        self._salt = salt
        self._verifiers = verifiers
        self._header = self._client_first = self._server_first = self._nonce = ""

    def first(self, message: bytes) -> bytes:
        """The server's first message in answer to the client's. Raises a `ScramError`."""
        found = _FIRST.fullmatch(_decoded(message))
        if found is None:
            raise ScramError("the first message of SCRAM is malformed, or asks for channel binding")
        self._header = found[0].removesuffix(found[2])
        self._client_first = found[2]
        self._nonce = found[3] + base64.b64encode(secrets.token_bytes(18)).decode()
        salt = base64.b64encode(self._salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={ITERATIONS}"
        return self._server_first.encode()

    def final(self, message: bytes) -> tuple[bytes, int] | None:
        """The server's last message and the place of the verifier that the proof fits; None where it fits none.

        Raises a `ScramError` where it is no such message.
        """
        found = _FINAL.fullmatch(_decoded(message))
        if found is None:
            raise ScramError("the last message of SCRAM is malformed")
        without_proof, binding, nonce, proof = found.groups()
        if nonce != self._nonce or _from64(binding) != self._header.encode():
            raise ScramError("the last message of SCRAM does not belong to its first")
        signed = f"{self._client_first},{self._server_first},{without_proof}".encode()
        given = _from64(proof)
        if len(given) != 32:
            raise ScramError("the proof of SCRAM has 32 bytes")
        fitting = None
        nobody = ScramVerifier(secrets.token_bytes(32), secrets.token_bytes(32))
        for place, verifier in enumerate(self._verifiers or [nobody]):
            signature = hmac.digest(verifier.stored_key, signed, "sha256")
            client_key = bytes(a ^ b for a, b in zip(given, signature, strict=True))
            if hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key):
                said = base64.b64encode(hmac.digest(verifier.server_key, signed, "sha256"))
                fitting = b"v=" + said, place
        return fitting


def _decoded(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a message of SCRAM is not UTF-8") from None


def _from64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ScramError("a message of SCRAM is not base 64") from None
