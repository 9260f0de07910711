"""Commands that can be pasted, at the end of the help of each command. A test runs those that are cheap."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": (
        "understudy demo --people 5000",
        "understudy init people.csv",
        "understudy ask 'count by sex' --dry-run",
    ),
    "start": (
        "understudy start people.csv --epsilon 1 --delta 1e-9",
        "understudy start people.csv --dry-run",
        "understudy start people.parquet -o people.yml --report people.html",
    ),
    "init": (
        "understudy init people.csv",
        "understudy init people.parquet -o people.yml --overwrite",
        "understudy init --from datapackage.json people.csv --yes",
    ),
    "check": (
        "understudy check",
        "understudy check --read",
        "understudy check --project people.yml --json",
    ),
    "ask": (
        "understudy ask 'count by sex' --dry-run",
        "understudy ask 'count age<18 by sex' --epsilon 0.05",
        "understudy ask 'rate sex=F within age' --epsilon 0.02",
        "understudy ask 'SELECT sex, count(*) FROM people GROUP BY sex' --json",
        "understudy ask 'count by age, sex' -o answer.csv",
        "understudy ask 'count by sex' --session survey --alpha 0.2",
    ),
    "keys": (
        "understudy keys town --epsilon 0.05",
        "understudy keys town --at-least 20 --request towns --json",
    ),
    "plan": (
        "understudy plan --rows 100000 --queries 1000 --epsilon 1",
        "understudy plan --queries 500 --alpha 0.05 --promise validity",
        "understudy plan --project understudy.yml --rows 100000 --marginals 2",
        "understudy plan --project understudy.yml --rows 100000 --ask 'SELECT avg(age) FROM town' --error 0.5",
        "understudy plan --columns 300 --rows 50000 --epsilon 1 --delta 1e-9",
        "understudy plan --table",
    ),
    "release": (
        "understudy release --epsilon 0.5 --workload all-2-way --dry-run",
        "understudy release --epsilon 0.5 --workload all-2-way --out release",
        "understudy release --out release --abandon",
    ),
    "demo": (
        "understudy demo",
        "understudy demo --people 5000 --folder town --json",
    ),
    "serve": (
        "understudy serve --project demo",
        "understudy serve server.yml --check",
        "understudy serve server.yml",
    ),
    "mcp": (
        "understudy mcp --url https://data.example.org --token-file agent.token",
        "understudy mcp --project demo",
    ),
    "token": ("understudy token new ada", "understudy token list"),
    "token new": (
        "understudy token new ada",
        "understudy token new 'the auditor' --role auditor --days 365 --doors http",
        "understudy token new explorer --agent --doors mcp --json",
    ),
    "token list": ("understudy token list", "understudy token list --json"),
    "token revoke": ("understudy token revoke 3f9a1c07d2",),
    "approvals": ("understudy approvals list",),
    "approvals list": ("understudy approvals list", "understudy approvals list --all --json"),
    "approve": ("understudy approve 8c1f0a9be4d2",),
    "deny": ("understudy deny 8c1f0a9be4d2 --reason 'ask by district, not by street'",),
    "server": ("understudy server backup monday", "understudy server restore monday"),
    "server backup": ("understudy server backup monday",),
    "server restore": ("understudy server restore monday",),
    "server prune": ("understudy server prune --older-than 90",),
    "server clock": ("understudy server clock",),
    "ledger": ("understudy ledger show", "understudy ledger verify"),
    "ledger show": (
        "understudy ledger show",
        "understudy ledger show --last 100",
        "understudy ledger show --html ledger.html",
    ),
    "ledger verify": ("understudy ledger verify", "understudy ledger verify --json"),
    "ledger export": (
        "understudy ledger export",
        "understudy ledger export -o without_answers.py --no-answers",
    ),
    "ledger new": ("understudy ledger new", "understudy ledger new --project people.yml"),
    "ledger witness": ("understudy ledger witness", "understudy ledger witness --new"),
    "audit": ("understudy audit privacy --mechanism laplace", "understudy audit validity --runs 2"),
    "audit privacy": (
        "understudy audit privacy",
        "understudy audit privacy --mechanism laplace --samples 4000000",
        "understudy audit privacy --effort full --resume audit.jsonl --hours 2",
    ),
    "audit validity": (
        "understudy audit validity --mode ladder --runs 2",
        "understudy audit validity --rows 5000 --queries 1000 --plot attacks.svg",
    ),
    "holdout": (
        "understudy holdout create labels.csv --queries 100",
        "understudy holdout score board.json submission.csv",
    ),
    "holdout create": (
        "understudy holdout create labels.csv --queries 100",
        "understudy holdout create labels.csv --queries 100 --mode gaussian -o gaussian.json",
    ),
    "holdout score": ("understudy holdout score board.json submission.csv --name ada",),
    "holdout show": (
        "understudy holdout show board.json",
        "understudy holdout show board.json --html board.html",
    ),
}
"""For each command, by its name after `understudy`."""
