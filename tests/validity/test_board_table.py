"""How a board reads its labels and the submissions: what is a code stays as it is written."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.errors import ParameterError, RefusedError, SourceError
from understudy.validity.board import Board, create

N = 1000
DRAW = np.random.default_rng(4)
CODES = DRAW.choice(["007", "7"], N)
NAMES = [f"p{i}" for i in range(N)]
TERMS = {"id": "id", "label": "label", "queries": 5, "mode": "gaussian"}


def written(path, ids, values, column="label"):
    lines = (f"{i},{value}\n" for i, value in zip(ids, values, strict=True))
    path.write_text(f"id,{column}\n" + "".join(lines), encoding="utf-8")
    return path


def board_of(folder, ids, labels, **terms):
    return create(folder / "board", written(folder / "labels.csv", ids, labels), **TERMS | terms)


def scored(board, folder, values, ids=NAMES):
    return board.score(written(folder / "s.csv", ids, values, "p")).score


def older(board):
    """The board as version 0.1 would have left its terms; its memory is begun anew."""
    terms = json.loads(board.path.read_text(encoding="utf-8"))
    del terms["as_written"]
    board.close()
    board.path.write_text(json.dumps(terms), encoding="utf-8")
    board.path.with_suffix(".db").unlink()
    return Board(board.path, new=True)


def test_codes_with_leading_zeros_are_labels_of_their_own(tmp_path):
    """`007` and `7` are two: all predictions of `7` are right for those rows alone that have it."""
    board = board_of(tmp_path, NAMES, CODES)
    share = float(np.mean(CODES == "7"))
    found = scored(board, tmp_path, ["7"] * N)
    assert abs(found.value - share) <= found.width
    assert abs(scored(board, tmp_path, CODES).value - 1) <= found.width
    assert scored(board, tmp_path, ["07"] * N).value <= found.width
    with pytest.raises(RefusedError, match="missing predictions"):
        scored(board, tmp_path, ["", *CODES[1:]])


def test_labels_of_many_digits_are_not_rounded(tmp_path):
    labels = np.where(CODES == "7", "12345678901234567890", "12345678901234567891")
    board = board_of(tmp_path, NAMES, labels)
    found = scored(board, tmp_path, [labels[0]] * N)
    assert abs(found.value - float(np.mean(labels == labels[0]))) <= found.width


def test_ids_are_compared_as_they_are_written(tmp_path):
    ids = [f"{i:05d}" for i in range(N)]
    board = board_of(tmp_path, ids, CODES)
    with pytest.raises(RefusedError, match=r"lacks ids \(1,000\).*0001 and 1 are two.*Nothing was counted"):
        scored(board, tmp_path, CODES, [str(i) for i in range(N)])
    assert board.holdout.left == 5
    assert scored(board, tmp_path, CODES, ids).source == "measured"
    pq.write_table(pa.table({"id": ids, "p": CODES}), tmp_path / "s.parquet")
    assert board.score(tmp_path / "s.parquet").score.left == 3


def test_0001_and_1_are_no_repeated_id(tmp_path):
    ids = [*(f"{i:04d}" for i in range(N // 2)), *(str(i) for i in range(N // 2))]
    board = board_of(tmp_path, ids, CODES)
    assert scored(board, tmp_path, CODES[::-1], ids[::-1]).left == 4


@pytest.mark.parametrize("writes", [lambda y: str(y), lambda y: f"{y}.0", lambda y: f"0{y}"])
def test_numeric_labels_are_numbers_however_a_program_writes_them(tmp_path, writes):
    labels = DRAW.integers(1, 4, N)
    board = board_of(tmp_path, NAMES, labels)
    found = scored(board, tmp_path, [writes(y) for y in labels])
    assert abs(found.value - 1) <= found.width


def test_amounts_are_numbers_whatever_zeros_they_begin_with(tmp_path):
    amounts = DRAW.integers(0, 100, N)
    board = board_of(tmp_path, NAMES, [f"{y:03d}" for y in amounts], metric="mae(scale=50)")
    found = scored(board, tmp_path, [f"{y}.0" for y in amounts])
    assert abs(found.value - 1) <= found.width


def test_probabilities_are_in_columns_named_by_codes(tmp_path):
    board = board_of(tmp_path, NAMES, CODES, metric="brier")
    sure = (CODES == "007").astype(int)
    lines = [f"{name},{p},{1 - p}\n" for name, p in zip(NAMES, sure, strict=True)]
    (tmp_path / "s.csv").write_text("id,007,7\n" + "".join(lines), encoding="utf-8")
    found = board.score(tmp_path / "s.csv").score
    assert abs(found.value - 1) <= found.width


def test_f1_is_of_a_code_as_it_is_written(tmp_path):
    with pytest.raises(ParameterError, match=r"labels are text.*such as f1\(positive='7'\)"):
        board_of(tmp_path, NAMES, CODES, metric="f1(positive=7)")
    board = board_of(tmp_path, NAMES, CODES, metric="f1(positive='007')")
    found = scored(board, tmp_path, CODES)
    assert found.low <= 1 <= found.high
    assert scored(board, tmp_path, ["7"] * N).low == 0  # numbers in a file are text where labels are


def test_boards_of_earlier_versions_go_on_as_they_were(tmp_path):
    """Their memory belongs to the labels as they were read then: codes as numbers, and ids as well."""
    board = older(board_of(tmp_path, [f"{i:05d}" for i in range(N)], CODES, public=0.5))
    assert len(board.show()) == 0
    found = scored(board, tmp_path, ["7"] * N, [str(i) for i in range(N)])
    assert abs(found.value - 1) <= found.width
    board.close()
    assert Board(board.path).holdout.left == 4


# ---- files that cannot be read


UNREADABLE = {
    "not written in UTF-8": ("id,pr\xe9d\np0,7\n".encode("latin-1"), "id,pred\np0,\xe9\n".encode("latin-1")),
    "Save it as CSV in UTF-8": ("id,pred\np0,7\n".encode("utf-16"), b"PK\x03\x04\n\x00,\x00\n"),
    "is empty": (b"", b"\n\n"),
    "quotation mark that is not closed": (b'id,pred\np0,"7\np1,7\n', b'id,"pred\np0,7\n'),
    "has 3 fields in line 3 and 2 in its first": (b"id,pred\np0,7\np1,7,7\n",),
    "separated by semicolons": (b"id;pred\np0;7\n", b"id;pred\np0;0,5\np1;0,7,5\n"),
    "separated by tabs": (b"id\tpred\np0\t7\n",),
    "has no column id. The first line": (b"key,pred\np0,7\n",),
    "has more than one column id. Leave one": (b"id,id\np0,7\n",),
    "is a Parquet file under another name": (b"PAR1\x15\x04\n,,\n",),
}


@pytest.mark.parametrize(("told", "data"), [(told, data) for told, of in UNREADABLE.items() for data in of])
def test_a_file_that_cannot_be_read_is_refused_in_words_and_not_counted(tmp_path, told, data):
    board = board_of(tmp_path, NAMES, CODES)
    file = tmp_path / "s.csv"
    file.write_bytes(data)
    with pytest.raises(RefusedError) as refused:
        board.score(file)
    assert str(refused.value).startswith("s.csv ")
    assert str(refused.value).endswith("Nothing was counted")
    assert told in str(refused.value)
    assert "s.csv" not in refused.value.problem + refused.value.remedy
    assert board.holdout.left == 5
    if "column id" not in told:
        with pytest.raises(SourceError) as unread:
            create(tmp_path / "other", file, **TERMS)
        assert told in str(unread.value)
    assert not (tmp_path / "other.json").exists()


@pytest.mark.parametrize("data", [b"", b"id,pred\np0,7\n", b"PAR1" + bytes(9) + b"PAR1"])
def test_a_damaged_parquet_file_is_refused_in_words(tmp_path, data):
    board = board_of(tmp_path, NAMES, CODES)
    (tmp_path / "s.parquet").write_bytes(data)
    with pytest.raises(RefusedError, match="it is no Parquet file, or damaged"):
        board.score(tmp_path / "s.parquet")
    assert board.holdout.left == 5


def test_what_is_compressed_is_read_and_quotation_marks_may_be_odd(tmp_path):
    board = board_of(tmp_path, NAMES, np.where(CODES == "7", '5" nail', "a"))
    with gzip.open(tmp_path / "s.csv.gz", "wt", encoding="utf-8") as file:
        file.write("id,pred\n" + "".join(f'{name},5" nail\n' for name in NAMES) + "\n")
    assert board.score(tmp_path / "s.csv.gz").score.source == "measured"
    (tmp_path / "s.csv.gz").write_bytes(b"no archive")
    with pytest.raises(RefusedError, match="it is no file, or damaged"):
        board.score(tmp_path / "s.csv.gz")
