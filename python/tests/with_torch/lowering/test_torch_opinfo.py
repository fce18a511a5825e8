# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own samples of its operations through fp8.torch.backend, beside eager PyTorch: no row of `opinfo.txt` gets worse.

Each commit judges some rows; `--slow` all. A row that is better than the table says is a warning with the command that
writes it, and fails with `--slow`, so that the table is true where all of it was judged.
"""

import warnings

import opinfo
import pytest

TABLE = opinfo.read_table()


@pytest.fixture(scope="module")
def judge():
    judge = opinfo.Judge()
    yield judge
    judge.close()


def check(verdict, row, is_exact=True):
    """Fails for a row that is worse than the table says; for one that is better too, or warns unless `is_exact`."""
    known = TABLE[row]
    # A difference that is documented is found as a wrong value.
    found = known if known.word == "differs" and verdict.word == "wrong" else verdict
    rank, before = opinfo.ORDER.index(found.word), opinfo.ORDER.index(known.word)
    assert rank <= before, f"{row} is worse than opinfo.txt says: it is '{verdict}', and was '{known}'"
    better = f"{row} is now '{verdict}', better than '{known}': write it with python python/tests/with_torch/lowering/opinfo.py '{row}'"
    assert rank == before or not is_exact, better
    if rank != before:
        warnings.warn(better, stacklevel=2)


@pytest.mark.slow(one_of=40)
@pytest.mark.parametrize("row", TABLE)
def test_row(row, judge, request):
    check(judge(row), row, is_exact=request.config.getoption("--slow"))


@pytest.mark.slow(one_of=80)
@pytest.mark.parametrize("row", [row for row, verdict in TABLE.items() if verdict.word == "right"])
def test_other_samples_of_a_row(row, judge, request):
    """Samples that a word draws: they may be refused, and never are wrong."""
    verdict = judge(row, request.config.getoption("--slow-sample") or "all")
    assert verdict.word in ("right", "refused", "left"), verdict


def test_table_has_plain_verdicts():
    words = {word for word, _ in TABLE.values()}
    assert words <= {"right", "differs", "left", "refused"}
    assert all(verdict.reason for verdict in TABLE.values() if verdict.word != "right")


def test_most_rows_are_right_or_documented():
    """At least so many in a hundred of the rows that torch.compile captures; the number may only grow."""
    captured = [verdict.word for verdict in TABLE.values() if verdict.word != "left"]
    assert sum(word in ("right", "differs") for word in captured) >= LEAST * len(captured) / 100


LEAST = 86


def test_documented_differences_are_in_the_readme():
    readme = (opinfo.TABLE.parents[3] / "README.md").read_text()
    reasons = {verdict.reason for verdict in TABLE.values() if verdict.word == "differs"}
    assert not [reason for reason in reasons if reason not in readme]


DIES = """
import json, os, signal, sys, time
for line in sys.stdin:
    row = json.loads(line)["row"]
    if row == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if row == "hangs":
        time.sleep(60)
    print(json.dumps({"verdict": "right", "reason": ""}), flush=True)
"""


def test_a_process_that_dies_or_hangs_is_a_verdict(tmp_path):
    (tmp_path / "worker.py").write_text(DIES)
    judge = opinfo.Judge(5, tmp_path / "worker.py")
    try:
        verdicts = [judge(row) for row in ("lives", "dies", "lives", "hangs", "lives")]
    finally:
        judge.close()
    assert [verdict.word for verdict in verdicts] == ["right", "died", "right", "died", "right"]


@pytest.mark.parametrize("found, outcome", [("right: ", "better"), ("refused: no form", None), ("wrong: 1 became 2", "worse"), ("died: ", "worse")])
def test_rows_that_change(found, outcome, monkeypatch):
    monkeypatch.setitem(TABLE, "row", opinfo.Verdict("refused", "no form"))
    verdict = opinfo.Verdict(*found.split(": "))
    if outcome is None:
        check(verdict, "row")
    else:
        with pytest.raises(AssertionError, match=outcome):
            check(verdict, "row")


@pytest.mark.slow(one_of=8)
def test_table_has_every_row(judge):
    missing = sorted(set(judge.rows()) ^ set(TABLE))
    assert not missing, f"python python/tests/with_torch/lowering/opinfo.py judges {missing}"
