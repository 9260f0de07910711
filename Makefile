# make demo and make test need Python 3.11+, make and a package index; they install everything else.
PYTHON ?= python3
UV := .tools/bin/uv
BIN := .venv/bin
export UV_COMPILE_BYTECODE := 1
export UV_PROJECT_ENVIRONMENT := .venv
WORKERS ?= 2
# Some tests wait for servers, browsers and other processes: one worker more than cores has something to do meanwhile.
TEST_WORKERS ?= $(shell expr $(WORKERS) + 1)
# Counts of one state of the code are no evidence about another: a file for each.
AUDIT_RECORD ?= audit-$(shell $(BIN)/python -c 'from understudy_audit.record import code_digest; print(code_digest())' 2>/dev/null || echo local).jsonl

.PHONY: help demo test lint docs tables screenshots dist bench bench-synthesis audit audit-ledger audit-release audit-server audit-session audit-validity clean

help:
	@echo "make demo   invent a town of 100,000 people and question it privately"
	@echo "make test   install what is needed and run every test"
	@echo "make lint   formatting, types, the direction of imports, and the links of the documentation"
	@echo "make docs   the documentation as a site that opens from disk: site/index.html"
	@echo "make tables the table in docs/mechanisms.md, anew from the mechanisms' cards"
	@echo "make screenshots  the pictures of the server's pages in docs/pictures, anew, with Chromium"
	@echo "make dist   a wheel and a source archive in dist/, and the demonstration run from the wheel alone"
	@echo "make bench  speed and accuracy against peers, as ratios"
	@echo "make audit  the long tests of privacy: millions of draws, planted faults, a million fuzzed inputs"
	@echo "make audit-release  all error bars of releases jointly, over thousands of releases, and mutants that they catch"
	@echo "make audit-server  the long tests of the server: 1,000 kills under load, a crowd, 20,000 calls of its description"
	@echo "make audit-session  sessions against analysts who steer to the worst of what was released"
	@echo "make audit-validity  adaptive analysts against every mode of the holdout"
	@echo "make audit-ledger  the long tests of the ledger: 10,000 kills, every power cut, 100,000 racing debits"

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Understudy needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv

.venv/installed: $(UV) pyproject.toml constraints.txt
	@$(UV) venv --quiet --allow-existing --python .tools/bin/python .venv
	@$(UV) pip install --quiet --python .venv/bin/python -c constraints.txt -e '.[server]'
	@touch $@

.venv/installed-test: .venv/installed
	@$(UV) pip install --quiet --python .venv/bin/python -c constraints.txt --group test --group lint
	@touch $@

.venv/installed-docs: .venv/installed
	@$(UV) pip install --quiet --python .venv/bin/python -c constraints.txt --group docs
	@touch $@

demo: .venv/installed
	@$(BIN)/understudy demo

# Compiled modules are kept, whatever the environment says: else each of the processes that tests start compiles the
# package again, and each worker rewrites every assertion.
test: export PYTHONDONTWRITEBYTECODE :=
test: .venv/installed-test
	$(BIN)/pytest -n $(TEST_WORKERS) --dist worksteal

lint: .venv/installed-test .venv/installed-docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet

docs: .venv/installed-docs
	$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

tables: .venv/installed
	$(BIN)/python website/mechanisms.py

screenshots: .venv/installed-test
	PYTHONPATH=tests $(BIN)/python website/screenshots.py

# The wheel must work where nothing but it is: in an environment of its own, away from this folder.
dist: $(UV)
	@rm -rf dist
	@$(UV) build --quiet --out-dir dist .
	@ls dist
	@cd "$$(mktemp -d)" && "$(CURDIR)/.tools/bin/uvx" --isolated --from "$(CURDIR)"/dist/*.whl understudy demo --people 20000

audit-ledger: .venv/installed-test
	UNDERSTUDY_AUDIT=1 $(BIN)/pytest tests/ledger --durations=10

audit: .venv/installed-test
	UNDERSTUDY_AUDIT=1 $(BIN)/pytest tests/audit -n $(WORKERS) --durations=20
	-@$(UV) pip install --quiet --python .venv/bin/python -c constraints.txt --group fuzz
	$(BIN)/python tests/audit/coverage_fuzz.py 60
	$(BIN)/understudy audit privacy --effort full --resume $(AUDIT_RECORD) --workers $(WORKERS) --hours 8 --out audit.html

audit-release: .venv/installed-test
	UNDERSTUDY_AUDIT=1 $(BIN)/pytest tests/releases -n $(WORKERS) --durations=10

audit-server: .venv/installed-test
	UNDERSTUDY_AUDIT=1 $(BIN)/pytest tests/server --durations=10
	$(BIN)/python -m bench server

# It takes hours: what passed on the same code is not run again (tests/audit_record.py).
SESSION_RECORD ?= audit-session.jsonl
audit-session: .venv/installed-test
	UNDERSTUDY_AUDIT=1 UNDERSTUDY_AUDIT_RECORD=$(SESSION_RECORD) PYTHONPATH=tests $(BIN)/pytest -p audit_record tests/sessions tests/lectures tests/privacy/test_joint_mixes.py -n $(WORKERS) --durations=20

audit-validity: .venv/installed-test
	UNDERSTUDY_AUDIT=1 $(BIN)/pytest tests/validity --durations=10
	UNDERSTUDY_AUDIT=1 $(BIN)/python -m bench validity

bench: .venv/installed-test
	$(BIN)/python -m bench

bench-synthesis: .venv/installed-test
	$(BIN)/python -m bench.synthesis --epsilons 0.1 1 10 --seeds 5 --wide --large --cold --peers all

clean:
	rm -rf .venv .tools demo site bench/data .pytest_cache .ruff_cache .hypothesis
