# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Adds up the JUnit files of CTest, lit and pytest: one line for each, and the sum as
# the last line. A file that is missing or empty counts as one failure: its runner broke.

import pathlib
import sys
import xml.etree.ElementTree as xml


def count(path):
    """(passed, failed, skipped) of one file."""
    if not path.exists():
        return 0, 1, 0
    passed = failed = skipped = 0
    for case in xml.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    if passed + failed + skipped == 0:
        failed = 1
    return passed, failed, skipped


def main(paths):
    total = [0, 0]
    print()
    for path in map(pathlib.Path, paths):
        passed, failed, skipped = count(path)
        total[0] += passed
        total[1] += failed
        print("%-8s %5d passed %3d failed %3d skipped" % (path.stem, passed, failed, skipped))
    print("%d passed, %d failed" % tuple(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
