"""Settings and a table that mutants share."""

from __future__ import annotations

from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy_audit.neighbours import Setting, table_pairs

SETTING = Setting(Budget.of(10), rows_at_least=1, rows_at_most=4096)
ADD = Setting(Budget.of(10), Neighbours.ADD_REMOVE, rows_at_least=1, rows_at_most=4096)
ROWS = next(iter(table_pairs(Neighbours.REPLACE))).first
