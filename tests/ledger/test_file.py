"""A SQLite ledger's file: it has one name, is nobody else's to read, and stays the file that was opened."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from ledger.durable import charge, opened, sound
from understudy.errors import LedgerError
from understudy.ledger import database, file
from understudy.privacy.event import SparseVector


def mode(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# ---- one name


def test_a_file_with_two_names_is_refused_under_either(sqlite, tmp_path):
    ledger = opened(sqlite)
    charge(ledger)
    other = sqlite.set(database=str(tmp_path / "other.ledger"))
    Path(other.database).hardlink_to(sqlite.database)
    with pytest.raises(LedgerError, match="has 2 names"):
        charge(ledger)  # the program that runs notices it as well
    with pytest.raises(LedgerError, match="has 2 names"):
        opened(other)
    with pytest.raises(LedgerError, match="has 2 names"):
        opened(sqlite)
    Path(other.database).unlink()
    charge(ledger)
    assert ledger.spent.amount == 0.2
    ledger.close()


def test_a_file_that_is_mounted_alone_is_refused(sqlite, tmp_path):
    charge(first := opened(sqlite))
    first.close()
    target = tmp_path / "a name.ledger"  # the kernel writes the space as \040
    target.touch()
    if subprocess.run(["mount", "--bind", sqlite.database, target], capture_output=True).returncode:
        pytest.skip("no right to mount")
    try:
        with pytest.raises(LedgerError, match=r"mount point: .*Mount the folder"):
            opened(sqlite.set(database=str(target)))
    finally:
        subprocess.run(["umount", target], check=True)


def test_mount_points_are_read_from_the_kernel_s_list(tmp_path, monkeypatch):
    listed = tmp_path / "mountinfo"
    listed.write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "36 22 8:1 /x /srv/a\\040b.ledger rw shared:1 - ext4 /dev/sda1 rw\n\n"
    )
    monkeypatch.setattr(file, "_MOUNTS", listed)
    assert file.is_mount_point(Path("/srv/a b.ledger"))
    assert not file.is_mount_point(Path("/srv/c.ledger"))
    monkeypatch.setattr(file, "_MOUNTS", tmp_path / "no list")
    assert not file.is_mount_point(listed)
    assert file.is_mount_point(Path("/"))


# ---- the file that was opened


@pytest.mark.parametrize("what", ["replaced", "removed", "renamed"])
def test_a_ledger_that_is_taken_away_grants_nothing_more(what, sqlite, tmp_path):
    ledger = opened(sqlite)
    charge(ledger)
    place, away = Path(sqlite.database), tmp_path / "away"
    if what == "removed":
        place.unlink()
    else:
        place.rename(away)
    if what == "replaced":
        shutil.copy(away, place)
    with pytest.raises(LedgerError, match=r"while this program used it.*nothing was granted"):
        charge(ledger, request="r")
    with pytest.raises(LedgerError):
        charge(ledger, request="r")
    with pytest.raises(LedgerError):
        _ = ledger.spent
    assert what == "replaced" or not place.exists()  # looking for it made no new one
    ledger.close()


def test_a_copy_put_in_place_of_a_ledger_does_not_double_the_budget(sqlite, tmp_path):
    ledger = opened(sqlite)
    for _ in range(2):
        charge(ledger)
    ledger.let_go()  # the log is folded in
    charge(ledger)
    shutil.copy(sqlite.database, tmp_path / "copy")
    (tmp_path / "copy").replace(sqlite.database)
    for _ in range(7):
        with pytest.raises(LedgerError):
            charge(ledger)
    ledger.close()


def test_a_ledger_that_is_put_back_goes_on(sqlite, tmp_path):
    ledger = opened(sqlite)
    charge(ledger)
    Path(sqlite.database).rename(tmp_path / "away")
    with pytest.raises(LedgerError, match="removed or renamed"):
        charge(ledger)
    (tmp_path / "away").rename(sqlite.database)
    charge(ledger)
    assert ledger.spent.amount == 0.2
    ledger.close()
    sound(sqlite)


# ---- who may read it


def test_a_new_ledger_is_its_owner_s_alone(sqlite):
    before = os.umask(0)
    try:
        ledger = opened(sqlite)
        charge(ledger)
        assert {mode(f"{sqlite.database}{ending}") for ending in ("", "-wal", "-shm")} == {0o600}
        ledger.close()
        os.chmod(sqlite.database, 0o660)  # a group's, by its keeper's choice
        ledger = opened(sqlite)
        charge(ledger)
        assert {mode(f"{sqlite.database}{ending}") for ending in ("", "-wal", "-shm")} == {0o660}
        ledger.close()
    finally:
        os.umask(before)


def everything(place: str) -> bytes:
    return b"".join(
        Path(f"{place}{ending}").read_bytes()
        for ending in ("", "-wal", "-shm")
        if Path(f"{place}{ending}").exists()
    )


def test_a_superseded_state_is_in_no_file(sqlite, monkeypatch):
    secrets = [f"noisy threshold number {i} ".encode() * 200 for i in range(4)]  # on overflow pages, too
    ledger = opened(sqlite)
    handle = ledger.charge(
        SparseVector(epsilon=Fraction(1, 10)), question="q", request="h", hidden=secrets[0]
    )
    assert secrets[0] in everything(sqlite.database) or b"threshold number 0" in everything(sqlite.database)
    assert ledger.advance(handle, step=0, question="q", answer=b"no", state=secrets[1])
    found = everything(sqlite.database)
    assert b"threshold number 0" not in found
    assert b"threshold number 1" in found
    monkeypatch.setattr(database, "WIPES_APART", 1e9)  # what waits for its turn is done at the end
    assert ledger.advance(handle, step=1, question="q", answer=b"no", state=secrets[2])
    assert b"threshold number 1" in everything(sqlite.database)
    reader = opened(sqlite)  # another connection: closing this one removes no log
    assert reader.spent.amount == 0.1
    ledger.close()
    assert b"threshold number 1" not in everything(sqlite.database)
    assert b"threshold number 2" in everything(sqlite.database)
    reader.close()
    sound(sqlite)
