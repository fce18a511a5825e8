# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a script ends."""

import sys


def compare(rows):
    """Prints what is expected and seen of each row (what, expected, known, seen), and exits: 0 if all is as known, else 1."""
    changed = False
    for what, expected, known, seen in rows:
        print(f"{what}\n    expected {expected}\n    seen     {seen}")
        changed |= str(seen) != str(known)
    sys.exit("the behaviour changed" if changed else 0)
