"""The names of the files in a release's folder; who only lists or sends them need not load what writes them."""

from __future__ import annotations

CERTIFICATE, ANSWERS, SYNTHETIC = "certificate.json", "answers.parquet", "synthetic.parquet"
STANDIN, SUMS, REPORT = "standin.npz", "sums.npz", "report.html"
SYNTHETIC_CSV, README = "synthetic.csv", "README.md"
FILES = frozenset({CERTIFICATE, ANSWERS, SYNTHETIC, SYNTHETIC_CSV, STANDIN, SUMS, REPORT, README})
"""What a release's folder holds: nothing else in it is ever replaced or deleted."""
