"""Columns as a frame of whichever library is at hand: pandas, polars, Arrow, or another that narwhals knows.

Columns become Arrow first, so that every library shows the same types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError

BACKENDS = ("pyarrow", "pandas", "polars", "modin", "cudf")
"""The libraries whose frames can be made. Arrow is always there."""

EXTRAS = ("pandas", "polars")
"""Those that Understudy can be installed with."""


class Labelled(Protocol):
    """The part of a marginal that names its cells."""

    @property
    def by(self) -> Sequence[str]: ...

    def labels(self) -> Iterable[Sequence[str]]: ...


class Answered(Protocol):
    """The part of an answer that a frame shows."""

    @property
    def query(self) -> Labelled: ...

    @property
    def value(self) -> NDArray[np.float64]: ...

    @property
    def error(self) -> NDArray[np.float64]: ...

    @property
    def noisy(self) -> NDArray[np.float64]: ...

    @property
    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None: ...

    @property
    def measure(self) -> str: ...


def to_frame(columns: Mapping[str, Any], backend: str = "pyarrow") -> Any:
    """A frame of the given columns, each a numpy array or a list, all of one length.

    >>> to_frame({"age": [31, 47], "sex": ["F", "M"]}).to_pylist()
    [{'age': 31, 'sex': 'F'}, {'age': 47, 'sex': 'M'}]
    """
    _check_backend(backend)
    pa: Any = import_module("pyarrow")  # untyped; takes a while to load, and most programs make no frame

    for name, column in columns.items():
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
            raise ParameterError(f"a column is named by text, not by {name!r}")
        if isinstance(column, str) or not hasattr(column, "__len__") or getattr(column, "ndim", 1) != 1:
            raise ParameterError(f"the column {name!r} is no list of single values")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise ParameterError(f"the columns of a frame have one length, not several: {listed}")
    arrays = {name: _array(name, column, pa) for name, column in columns.items()}
    return as_backend(pa.table(arrays), backend)


def as_backend(table: Any, backend: str) -> Any:
    """An Arrow table as a frame of a library; a `ParameterError` where that is unknown or not installed."""
    _check_backend(backend)
    if backend == "pyarrow":
        return table
    import narwhals as nw  # takes a while to load, as above

    return nw.from_arrow(table, backend=backend).to_native()  # type: ignore[arg-type]


def answer_frame(answer: Answered, backend: str = "pyarrow") -> Any:
    """A frame with a row for each cell: its labels, and the `value`, `error` and `noisy` of the answer.

    Where the answer has them, `low` and `high` follow, the ends of each interval.

    The values of a share are headed `share`, those of a rate `rate`: nobody takes one for the other.

    Where an attribute has one of these names, the answer's column gets an underscore.
    """
    by = list(answer.query.by)
    labels = [list(cell) for cell in answer.query.labels()]
    columns: dict[str, Any] = {name: [cell[i] for cell in labels] for i, name in enumerate(by)}
    for name, numbers in told_numbers(answer).items():
        free = name
        while free in columns:
            free += "_"
        columns[free] = np.asarray(numbers, dtype=np.float64).ravel()
    return to_frame(columns, backend)


def told_numbers(answer: Answered) -> dict[str, NDArray[np.float64]]:
    """What a frame tells of each cell, under the names that its columns have where no attribute is called so."""
    low_and_high = {} if answer.ends is None else dict(zip(("low", "high"), answer.ends, strict=True))
    return {answer.measure: answer.value, "error": answer.error, "noisy": answer.noisy, **low_and_high}


def _check_backend(backend: str) -> None:
    if backend not in BACKENDS:
        raise ParameterError(f"{backend!r} makes no frames here; choose one of {', '.join(BACKENDS)}")
    if find_spec(backend) is None:
        wanted = f"'understudy[{backend}]'" if backend in EXTRAS else backend
        raise ParameterError(f"{backend} is not installed; run `pip install {wanted}`")


def _array(name: str, column: Any, pa: Any) -> Any:
    try:
        return pa.array(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        # The values may be private: their text stays out of the message.
        raise ParameterError(
            f"the column {name!r} cannot be put into a frame ({type(error).__name__})"
        ) from None
