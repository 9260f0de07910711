"""Mechanisms broken on purpose, each with the audit that is to catch it. Each was published, or shipped.

An audit must be able to fail: a mutant that no audit catches is listed with the reason (`escapes`). And it must be
able to pass: `HONEST` are mechanisms of the product under the same audits.
"""

from __future__ import annotations

from audit.mutants.accounting import ACCOUNTING, ACCOUNTING_HONEST
from audit.mutants.adaptive import ADAPTIVE, ADAPTIVE_HONEST
from audit.mutants.coverage import COVERAGE, COVERAGE_HONEST
from audit.mutants.curator import CURATOR
from audit.mutants.flow import FLOW
from audit.mutants.holdout import HOLDOUT, HOLDOUT_HONEST
from audit.mutants.keys import KEYS, KEYS_HONEST
from audit.mutants.looks import LOOKS, LOOKS_HONEST
from audit.mutants.noise import NOISE
from audit.mutants.restart import RESTART, RESTART_HONEST
from audit.mutants.runs import RUNS, RUNS_HONEST
from audit.mutants.selection import SELECTION
from audit.mutants.sensitivity import SENSITIVITY
from audit.mutants.sparse_vector import SPARSE_VECTOR

MUTANTS = [
    *NOISE, *SELECTION, *SPARSE_VECTOR, *FLOW, *SENSITIVITY, *CURATOR, *ACCOUNTING, *ADAPTIVE, *COVERAGE, *HOLDOUT,
    *RESTART, *RUNS, *LOOKS, *KEYS,
]  # fmt: skip
HONEST = [
    *ACCOUNTING_HONEST,
    *ADAPTIVE_HONEST,
    *COVERAGE_HONEST,
    *HOLDOUT_HONEST,
    *RESTART_HONEST,
    *RUNS_HONEST,
    *LOOKS_HONEST,
    *KEYS_HONEST,
]
