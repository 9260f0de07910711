from __future__ import annotations

from understudy.server.audit_log import AuditLog
from understudy.server.pauses import Pauses
from understudy.server.store import ServerStore


def test_a_pause_is_kept_told_and_logged(state):
    with ServerStore(state) as store:
        pauses = Pauses(store)
        assert pauses.of("town") is None
        pauses.pause("town", by="cy", reason="a question about consent")
        assert pauses.of("town").reason == "a question about consent"
        assert pauses.of("visits") is None
    with ServerStore(state) as store:
        pauses = Pauses(store)
        assert [pause.table for pause in pauses.all()] == ["town"]
        pauses.resume("town", by="cy")
        pauses.resume("town", by="cy")
        assert pauses.of("town") is None
        assert [entry.act for entry in AuditLog(store).entries()] == ["pause", "resume"]
