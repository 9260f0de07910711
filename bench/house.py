"""How far one has to walk in this house: traces of some walks, its size by room, and what stands about unused.

Beside each figure stands that of version 0.1 and what is aimed at. The figures are a compass and no judgement: the
status is 0 whatever they are.

Run: python -m bench house
     python -m bench.house --tree 'CLI `ask`, cold' --deep 6
     python -m bench.house --layers 'CLI `ask`, cold'
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stdout
from inspect import CO_OPTIMIZED
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import understudy
from bench.layers import layers
from bench.verdict import Verdict

ROOT = Path(__file__).resolve().parent.parent
SRC = Path(understudy.__file__).resolve().parent.parent
INNER = ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
"""Code that has no name of its own: it belongs to the function around it."""

DECLARATION = """\
understudy: 1
name: people
source: people.csv
budget: {epsilon: 4, delta: 1e-9}
neighbours: replace
attributes:
  age: {type: integer, edges: [0, 18, 30, 45, 65, 120]}
  sex: {type: category, values: [F, M]}
  district: {type: category, values: [a, b, c]}
"""


class Walk(NamedTuple):
    functions: int
    files: int
    depth: int


class Past(NamedTuple):
    """The figures of version 0.1, where it was traced, and the most functions and files that are aimed at."""

    walk: Walk | None
    aim: tuple[int, int] | None


PAST = {
    "CLI `ask`, cold": Past(Walk(362, 52, 23), (150, 25)),
    "second question": Past(None, None),
    "session, first question": Past(Walk(412, 63, 26), (220, 30)),
    "adaptive release": Past(Walk(587, 78, 26), None),
    "holdout score": Past(Walk(16, 5, 5), None),
}
ACCESS = {
    "Curator.perform": "keeps the order of access",
    "Curator._buy": "keeps the order of access",
    "Curator._checked": "examines noise and price",
    "DurableLedger.charge": "charges the ledger",
    "DurableLedger.settle": "keeps the answer",
    "Truth.sums_of": "looks at the table",
    "ConcentratedNoise.release": "draws noise",
    "LaplaceMechanism.release": "draws noise",
    "measured_answers": "makes the answer",
}
"""What every walk to the data has in common."""
PHASES = {
    "CLI `ask`, cold": {
        "read": "reads the declaration",
        "open_project": "opens the project",
        "open_source": "opens the table",
        "Truth.__init__": "opens the table",
        "open_ledger": "opens the ledger",
        "QuestionReader.read": "reads the question",
        "Project._priced": "prices it",
        "PreparedQuestion.run": "keeps the order of access",
        **ACCESS,
        "PreparedQuestion._answered": "makes the answer",
        "tell_unread": "tells it, with notes",
        "_give": "tells it, with notes",
        "_tell_left": "tells it, with notes",
    },
    "second question": {
        "QuestionReader.read": "reads the question",
        "Project._priced": "prices it",
        "PreparedQuestion.run": "keeps the order of access",
        **ACCESS,
        "PreparedQuestion._answered": "makes the answer",
    },
    "session, first question": {
        "QuestionReader.read": "reads the question",
        "PartAnswers.free": "deduces what is known",
        "Buyer.catch_up": "catches up with others",
        "PurchasePlans.of_one": "plans the purchase",
        "Buyer.make": "writes it down and learns",
        "PurchaseRequest.measure": "keeps the order of access",
        "SessionPromise.certified": "bounds the population",
        **ACCESS,
        "CountQuestion.answer": "makes the answer",
    },
    "adaptive release": ACCESS,
    "holdout score": {},
}
"""Functions of a walk that begin a stage of it; what is called outside of them is the rest."""
REST = "the rest"
RUNGS, LINES = (31, 14), (48_700, 34_000)
"""Import rungs and lines of 0.1, when guests still lived in the core, and the most that is aimed at."""
TWICE, UNREACHED = 30, 35
"""Class names that were used twice in 0.1, and modules that nothing reached."""


# ---- walks


class Trace(NamedTuple):
    """A whole walk, and each of its stages by what it is for: what two of them call counts in both."""

    whole: Walk
    stages: dict[str, tuple[int, int, int]]
    """Of each stage the functions and files that it enters, and the functions that no stage before it entered."""
    calls: tuple[tuple[int, str, str], ...] = ()
    """Each function where it is first entered: how deep, its name and its file."""


def traced(walk: Callable[[], object], stages: Mapping[str, str]) -> Trace:
    """Distinct functions and files of ours that a call enters, how deep they stack, and in which stage."""
    seen: dict[str, set[tuple[str, str]]] = {}
    stack: list[str] = []
    calls: dict[tuple[str, str], int] = {}
    first = Counter[str]()
    deepest = 0

    def notice(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        if event not in ("call", "return") or not _is_function(code) or not _is_ours(code.co_filename):
            return
        if event == "return":
            if stack:
                stack.pop()
            return
        stack.append(stages.get(code.co_qualname, stack[-1] if stack else REST))
        deepest = max(deepest, len(stack))
        entered = code.co_filename, code.co_qualname
        seen.setdefault(stack[-1], set()).add(entered)
        if entered not in calls:
            first[stack[-1]] += 1
            calls[entered] = len(stack) - 1

    sys.setprofile(notice)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return Trace(
        Walk(len(calls), _files(calls), deepest),
        {stage: (len(entered), _files(entered), first[stage]) for stage, entered in seen.items()},
        tuple((deep, name, str(Path(file).relative_to(SRC))) for (file, name), deep in calls.items()),
    )


def _files(entered: Iterable[tuple[str, str]]) -> int:
    return len({file for file, _ in entered})


def _is_function(code: CodeType) -> bool:
    """Not the body of a module or a class, which is not optimised, nor what belongs to the function around it."""
    return bool(code.co_flags & CO_OPTIMIZED) and code.co_name not in INNER


_ours: dict[str, bool] = {}


def _is_ours(file: str) -> bool:
    if file not in _ours:
        _ours[file] = Path(file).is_relative_to(SRC)
    return _ours[file]


def asking() -> Callable[[], object]:
    from understudy.cli.app import main

    def ask() -> None:
        sys.argv = ["understudy", "ask", "count age<30 by sex", "--epsilon", "0.1"]
        with redirect_stdout(StringIO()):
            main()

    return ask


def asking_again() -> Callable[[], object]:
    project = understudy.open("understudy.yml")
    project.ask("count district=a", epsilon=0.1)
    return lambda: project.ask("count age<30 by sex", epsilon=0.1)


def questioning() -> Callable[[], object]:
    session = understudy.session(understudy.open("understudy.yml"), alpha=0.1, beta=0.05, queries=1000)
    return lambda: session.ask("count age<30 by sex")


def releasing() -> Callable[[], object]:
    project, workload = understudy.open("understudy.yml"), understudy.marginals(2)
    return lambda: understudy.release(project, workload, epsilon=1, delta=1e-9, method="adaptive")


def scoring() -> Callable[[], object]:
    import numpy as np

    class Constant:
        def predict(self, rows: Any) -> Any:
            return np.zeros(len(rows), dtype=int)

    labels = np.arange(400) % 2
    holdout = understudy.Holdout(labels[:, None], labels, queries=100, beta=0.05)
    return lambda: holdout.score(Constant())


WALKS = dict(zip(PAST, (asking, asking_again, questioning, releasing, scoring), strict=True))


def walked(name: str) -> Trace:
    """A walk in a process of its own: nothing is remembered from another."""
    command = [sys.executable, "-m", "bench.house", "--walk", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the walk {name!r} failed:\n{done.stderr}")
    whole, stages = json.loads(done.stdout.splitlines()[-1])
    return Trace(Walk(*whole), stages)


def walk_here(name: str) -> Trace:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        rows = [f"{i % 100},{'FM'[i % 2]},{'abc'[i % 3]}" for i in range(2000)]
        Path("people.csv").write_text("age,sex,district\n" + "\n".join(rows) + "\n", encoding="utf-8")
        Path("understudy.yml").write_text(DECLARATION, encoding="utf-8")
        return traced(WALKS[name](), PHASES[name])


# ---- what stands where


class Module(NamedTuple):
    name: str
    tree: ast.Module
    lines: int

    @property
    def room(self) -> str:
        first, _, rest = self.name.partition(".")
        return f"{first}.{rest.split('.')[0]}" if first == "understudy" and rest else first


def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        found[name] = Module(name, ast.parse(text), text.count("\n"))
    return found


def statements(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def classes_used_twice(house: dict[str, Module]) -> Counter[str]:
    named = Counter(
        node.name
        for module in house.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    )
    return Counter({name: count for name, count in named.items() if count > 1})


def rungs() -> int:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return next(len(contract["layers"]) for contract in settings["contracts"] if contract["type"] == "layers")


def unreached(house: dict[str, Module]) -> list[str]:
    """Modules that cannot be reached from the program, the public names or the release methods."""
    homes = {home.split(":")[0] for home in understudy._HOME.values()}  # pyright: ignore[reportPrivateUsage]
    waiting, met = ["understudy.cli.app", "understudy.releases.methods", *homes], set[str]()
    while waiting:
        name = waiting.pop()
        if name in met or name not in house:
            continue
        met.add(name)
        waiting += [name.rpartition(".")[0], *imported(house[name], house)]
    return sorted(name for name in house.keys() - met)


def imported(module: Module, house: dict[str, Module]) -> Iterator[str]:
    """What a module imports, at its top or later; not what it names for types alone."""
    typed = {id(part) for node in ast.walk(module.tree) if _is_for_types(node) for part in ast.walk(node)}
    for node in ast.walk(module.tree):
        if id(node) in typed:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # import_module("understudy.…")
            yield node.value.split(":")[0]


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


# ---- the table


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--walk", choices=list(WALKS), help="take one walk here, and print its figures as JSON"
    )
    parser.add_argument(
        "--tree", choices=list(WALKS), help="print each function of a walk where it is entered"
    )
    parser.add_argument(
        "--deep", type=int, default=99, help="with --tree: to this depth (default: to the end)"
    )
    parser.add_argument(
        "--layers", choices=list(WALKS), help="print the short functions of a walk that one place calls"
    )
    given = parser.parse_args(arguments)
    if given.walk:
        print(json.dumps(walk_here(given.walk)[:2]))
        return []
    if given.tree:
        for deep, name, file in walk_here(given.tree).calls:
            if deep <= given.deep:
                print(f"{'  ' * deep}{name}  ({file})")
        return []
    if given.layers:
        calls = walk_here(given.layers).calls
        found = list(layers([(name, file) for _, name, file in calls], SRC))
        for one in found:
            print(f"{one.name}  ({one.file}:{one.line})  {one.code}")
        print(f"{len(found)} of {len(calls)} functions are short and have one caller")
        return []
    show_walks()
    house = modules()
    show_rooms(house)
    show_order(house)
    return []


def show_walks() -> None:
    print(f"{'walk':<26}{'functions':>10}{'files':>7}{'depth':>7}   {'in 0.1':<16}aim")
    for name, (past, aim) in PAST.items():
        now, stages, _ = walked(name)
        before = "" if past is None else f"{past.functions} / {past.files} / {past.depth}"
        aimed = f"≤ {aim[0]} in ≤ {aim[1]}" if aim else ""
        print(f"{name:<26}{now.functions:>10}{now.files:>7}{now.depth:>7}   {before:<16}{aimed}", flush=True)
        for stage, (functions, files, first) in stages.items() if len(stages) > 1 else ():
            print(f"  {stage:<30}{functions:>4}{files:>7}   {first} of them first", flush=True)
    print()


def show_rooms(house: dict[str, Module]) -> None:
    lines, counted, files = Counter[str](), Counter[str](), Counter[str]()
    for module in house.values():
        files[module.room] += 1
        lines[module.room] += module.lines
        counted[module.room] += statements(module.tree)
    print(f"{'room':<26}{'files':>6}{'lines':>8}{'statements':>12}")
    for room in sorted(lines, key=lambda room: (not room.startswith("understudy."), room)):
        print(f"{room:<26}{files[room]:>6}{lines[room]:>8,}{counted[room]:>12,}")
    core = [room for room in lines if room.split(".")[0] == "understudy"]
    print(f"{'core':<26}{_sum(files, core):>6}{_sum(lines, core):>8,}{_sum(counted, core):>12,}", end="")
    print(f"   in 0.1 {LINES[0]:,} lines with the guests; aim ≤ {LINES[1]:,}")
    print(f"{'all':<26}{files.total():>6}{lines.total():>8,}{counted.total():>12,}\n")


def _sum(counts: Counter[str], rooms: list[str]) -> int:
    return sum(counts[room] for room in rooms)


def show_order(house: dict[str, Module]) -> None:
    print(f"import rungs: {rungs()} (in 0.1 {RUNGS[0]}; aim ≤ {RUNGS[1]})")
    twice = classes_used_twice(house)
    named = ", ".join(f"{name} ×{count}" for name, count in twice.most_common())
    print(f"class names used twice or more: {len(twice)} (in 0.1 {TWICE}; aim 0): {named or 'none'}")
    lost = [
        name for name in unreached(house) if not name.startswith("understudy_textbook")
    ]  # that is for readers
    size = sum(house[name].lines for name in lost)
    past = f"in 0.1 {UNREACHED}, 2,900 lines; aim 0"
    print(f"modules that nothing imports, the textbook apart: {len(lost)}, {size:,} lines ({past})")
    for name in lost:
        print(f"  {name} ({house[name].lines} lines)")


if __name__ == "__main__":
    main(sys.argv[1:])
