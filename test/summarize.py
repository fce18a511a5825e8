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
    """(passed, failed, skipped, left out) of one file."""
    if not path.exists():
        return 0, 1, 0, 0
    passed = failed = skipped = 0
    root = xml.parse(path).getroot()
    left_out = sum(int(p.get("value")) for p in root.iter("property") if p.get("name") == "left_out")
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    if passed + failed + skipped == 0:
        failed = 1
    return passed, failed, skipped, left_out


def main(paths):
    total = [0, 0]
    print()
    for path in map(pathlib.Path, paths):
        passed, failed, skipped, left_out = count(path)
        total[0] += passed
        total[1] += failed
        slow = "%5d slow ones left out" % left_out if left_out else ""
        print("%-8s %5d passed %3d failed %3d skipped%s" % (path.stem, passed, failed, skipped, slow))
    print("%d passed, %d failed" % tuple(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
