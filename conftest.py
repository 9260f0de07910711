"""What holds for every test: those of `tests` and the examples in docstrings, README and docs."""

pytest_plugins = ["compiled_once", "examples_sought", "repeatable_noise", "rewritten_once"]
