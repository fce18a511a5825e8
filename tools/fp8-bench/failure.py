# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error of this tool's Python part: one sentence, for the user."""


class Failure(Exception):
    """Ends the benchmark; `bench.py` prints its text after "fp8-bench: error: " and exits with 1."""
