# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop of a peer: requests in on standard input, answers out on standard output, one JSON line each."""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Tasks = dict[str, Callable[..., dict[str, Any]]]


def best(call: Callable[[], object], seconds: float) -> float:
    """Seconds of the fastest call, of at least five and of all within `seconds`."""
    least, count, begin = float("inf"), 0, time.perf_counter()
    while count < 5 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
        count += 1
    return least


def serve(tasks: Tasks) -> None:
    """Answers requests until the input ends. Output of libraries goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = tasks[request.pop("task")](**request)
        except Exception as error:  # whatever it is, the one who asked must learn of it
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)
