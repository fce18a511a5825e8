# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of calls that wait for the device."""

import statistics
import time
from collections.abc import Callable


def milliseconds(call: Callable[[], object], warm_up: int = 3, calls: int = 10) -> float:
    """The median of some calls, after those that compile."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)
