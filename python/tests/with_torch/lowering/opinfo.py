# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of verdicts on PyTorch's samples of its operations (OpInfo), and the processes that judge them.

    python opinfo.py                    # judges every row, and writes the table
    python opinfo.py 'cumsum float32'   # judges the rows whose names begin so, and puts them into the table

It needs the environment of fp8.torch's tests, and FP8_TOOLS. The verdicts are in `opinfo.txt`:
`right`; `differs`, by what its reason says, which README's table of differences has; `left`: torch.compile captures no
graph of it; `refused`, with the error. A row that is found wrong is written as `wrong`, which a test refuses: mend it, or
write `differs` and the reason by hand, which stay.
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
from typing import Any, NamedTuple

TABLE = pathlib.Path(__file__).with_name("opinfo.txt")
SOURCES = pathlib.Path(__file__).resolve().parents[3] / "src"
WORKER = pathlib.Path(__file__).with_name("opinfo_worker.py")
#: For the samples of a row, in seconds: compiling them takes some seconds where nothing else runs.
LIMIT = 300


class Verdict(NamedTuple):
    word: str
    reason: str = ""

    def __str__(self) -> str:
        return ": ".join(filter(None, self))


#: Better ones first; `wrong` and `died` are in no table.
ORDER = ("right", "differs", "left", "refused", "wrong", "died")


def read_table() -> dict[str, Verdict]:
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    parts = [line.split(": ", 2) for line in lines if line and not line.startswith("#")]
    return {row: Verdict(*verdict) for row, *verdict in parts}


def write_table(table: dict[str, Verdict]) -> None:
    head = "# Verdicts on the samples of PyTorch's operations: see opinfo.py, which writes this file.\n"
    TABLE.write_text(head + "".join(f"{row}: {verdict}\n" for row, verdict in sorted(table.items())))


def updated(old: Verdict | None, new: Verdict) -> Verdict:
    """The row of the table afterwards: reasons that were written by hand stay."""
    if new.word == "right":
        return Verdict("right")
    return old if old is not None and old.word == "differs" and new.word == "wrong" else new


class Judge:
    """A process that judges rows. One that dies or takes too long is a verdict, and the next row gets another."""

    def __init__(self, limit: float = LIMIT, worker: pathlib.Path = WORKER) -> None:
        self._limit, self._worker = limit, worker
        self._process: subprocess.Popen[str] | None = None

    def rows(self) -> list[str]:
        return list(self._ask("rows"))

    def __call__(self, row: str, word: str | None = None) -> Verdict:
        try:
            answer = self._ask({"row": row, "word": word})
        except TimeoutError:
            return Verdict("died", f"it takes more than {self._limit:.0f} s")
        except EOFError:
            return Verdict("died", "the process ended")
        return Verdict(answer["verdict"], answer["reason"])

    def _ask(self, request: Any) -> Any:
        if self._process is None:
            command = [sys.executable, str(self._worker)]
            paths = filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")])
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment)
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], self._limit)[0]:
                raise TimeoutError
            line = self._process.stdout.readline()
        except (TimeoutError, BrokenPipeError, KeyboardInterrupt) as error:
            self.close()
            raise (EOFError if isinstance(error, BrokenPipeError) else type(error)) from None
        if not line:
            self.close()
            raise EOFError
        return json.loads(line)

    def close(self) -> None:
        """Ends the process, and what it started."""
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.communicate()
            self._process = None


def main(prefixes: list[str]) -> None:
    judge, table = Judge(), read_table()
    rows = [row for row in judge.rows() if not prefixes or row.startswith(tuple(prefixes))]
    for row in rows:
        verdict = judge(row)
        print(f"{row}: {verdict}", flush=True)
        table[row] = updated(table.get(row), verdict)
        write_table(table)
    judge.close()


if __name__ == "__main__":
    main(sys.argv[1:])
