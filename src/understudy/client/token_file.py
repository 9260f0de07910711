"""The token that opens a server: given, in the environment, or in a file that nobody else may read."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from understudy.client.address import ServerAddress
from understudy.errors import AccessError, ParameterError

VARIABLE = "UNDERSTUDY_TOKEN"

_TOKEN = re.compile(r"[\x21-\x7e]{1,512}")


def tokens_file() -> Path:
    """Where tokens are kept: `understudy/tokens` in the user's folder of settings."""
    if os.name == "nt":
        base = os.environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
    else:
        base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "understudy" / "tokens"


def found_token(address: ServerAddress, given: str | None) -> str:
    """The token for a server: the given one, else that of UNDERSTUDY_TOKEN, else the server's line in the file.

    A line of the file is the server's address, a space and the token: a token goes to the server that it is
    for, and to no other. Raises an `AccessError` where there is none, or where others may read the file, and a
    `ParameterError` where what is given cannot be a token. No error holds a token.
    """
    if given is not None:
        return _checked(given, "the argument `token`")
    in_environment = os.environ.get(VARIABLE, "")
    if in_environment.strip():
        return _checked(in_environment, f"the variable {VARIABLE}")
    file = tokens_file()
    found = _in_file(file, address)
    if found is not None:
        return _checked(found, f"a line of {file}")
    raise AccessError(
        f"there is no token for {address.text}",
        remedy=f"Ask the custodian for one, and give it in the variable {VARIABLE}, in the file of tokens (mode "
        f"0600) as a line: {address.text} TOKEN, or in Python as `token=`",
        detail=f"there is no token for {address.text}. Ask the custodian for one, and give it in the variable "
        f"{VARIABLE}, in {file} (mode 0600) as a line: {address.text} TOKEN, or in Python as `token=`",
    )


def token_in(file: Path) -> str:
    """The token that a file holds, and nothing else; raises as `found_token` does where others may read it."""
    text = _read(file)
    if text is None:
        raise AccessError(
            "there is no such file of a token",
            remedy="Write the token that the custodian gave you into it, and give it the mode 0600",
            detail=f"there is no file {file}: write the token into it, and give it the mode 0600",
        )
    return _checked(text, f"the file {file}")


def _checked(token: str, where: str) -> str:
    is_text = isinstance(token, str)  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
    token = token.strip() if is_text else ""
    if _TOKEN.fullmatch(token) is None:
        raise ParameterError(
            f"what {where} holds is no token",
            remedy="A token is one word, as `understudy token new` prints it",
        )
    return token


def _in_file(file: Path, address: ServerAddress) -> str | None:
    """The token of a server in the file; None where there is no file, or no such line."""
    for line in (_read(file) or "").splitlines():
        words = line.split()
        if len(words) == 2 and _is_address(words[0], address):
            return words[1]
    return None


def _read(file: Path) -> str | None:
    """What a file says that nobody else may read; None where there is no file."""
    try:
        with file.open(encoding="utf-8") as opened:
            _check_private(os.fstat(opened.fileno()), file)
            return opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(
            "the file of tokens cannot be read",
            remedy=f"Mend it, or give the token in the variable {VARIABLE}",
            detail=f"{file} cannot be read ({type(error).__name__}): mend it, or give the token in the variable "
            f"{VARIABLE}",
        ) from None


def _is_address(text: str, address: ServerAddress) -> bool:
    try:
        return ServerAddress.read(text) == address
    except ParameterError:
        return False


def _check_private(found: os.stat_result, file: Path) -> None:
    """Refuse a file that others may read or write; where there are no modes, the folder has to protect it."""
    if os.name == "nt":
        return
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise AccessError(
            "others may read the file of tokens, so it is not used",
            remedy="Take their rights away with `chmod 600`, and let the custodian revoke what was in it",
            detail=f"others may read {file}, so it is not used: run `chmod 600 {file}`, and let the custodian "
            "revoke what was in it",
        )
    if found.st_uid not in (0, os.geteuid()):
        raise AccessError(
            "the file of tokens belongs to somebody else, so it is not used",
            remedy="Make one of your own, with mode 0600",
            detail=f"{file} belongs to somebody else, so it is not used: make one of your own, with mode 0600",
        )
