#!/usr/bin/env python3
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Asks ptxas which targets and versions accept the instructions of requirements.txt, and
# writes that into it. PTXAS is the program, ptxas of the PATH without it.

import os
import pathlib
import re
import subprocess

FILE = pathlib.Path(__file__).with_name("requirements.txt")
PTXAS = os.environ.get("PTXAS", "ptxas")
# Each with the version that it came with.
TARGETS = {"75": "6.3", "80": "7.0", "86": "7.1", "87": "7.4", "88": "9.0", "89": "7.8", "90": "7.8", "90a": "8.0",
           "100": "8.6", "100f": "8.8", "100a": "8.6", "103": "8.8", "103f": "8.8", "103a": "8.8", "110": "9.0",
           "110f": "9.0", "110a": "9.0", "120": "8.7", "120f": "8.8", "120a": "8.7", "121": "8.8", "121f": "8.8",
           "121a": "8.8"}
VERSIONS = ["6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "8.0", "8.1", "8.2",
            "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0", "9.1", "9.2", "9.3", "9.4", "9.5"]


def number(version):
    return tuple(map(int, version.split(".")))


def refused(version, target, instructions):
    """The indices of those that ptxas refuses; one instruction a line, refused ones are taken out until it accepts."""
    left, out = list(range(len(instructions))), set()
    while True:
        wide = ".reg .b128 %q<4>;" if number(version) >= (8, 3) else ""
        head = [".version " + version, ".target sm_" + target, ".address_size 64",
                ".visible .entry k(.param .u64 p) { .shared .align 1024 .b8 buf[4096]; .reg .b32 %r<32>; .reg .b64 %rd<16>;",
                ".reg .b16 %rs<16>; .reg .f32 %f<32>; .reg .f64 %fd<8>; .reg .pred %p<4>; " + wide]
        text = "\n".join(head + [instructions[i] for i in left] + ["ret; }", ""])
        run = subprocess.run([PTXAS, "-arch=sm_" + target, "-o", "/dev/null", "-"], input=text, capture_output=True, text=True)
        if run.returncode == 0:
            return out
        lines = {int(n) - len(head) - 1 for n in re.findall(r"line (\d+); (?:error|fatal)", run.stderr + run.stdout)}
        found = {left[line] for line in lines if 0 <= line < len(left)}
        if not found:
            raise SystemExit(run.stderr + run.stdout)
        out |= found
        left = [i for i in left if i not in found]


def main():
    text = FILE.read_text().splitlines()
    comments = [line for line in text if line.startswith("#")]
    instructions = [line.split(" | ")[2] for line in text if not line.startswith("#")]
    newest = {target: refused(VERSIONS[-1], target, instructions) for target in TARGETS}
    least = {}
    for version in VERSIONS:
        for target, first in TARGETS.items():
            waiting = [i for i in range(len(instructions)) if i not in least and i not in newest[target]]
            if waiting and number(version) >= number(first):
                no = refused(version, target, [instructions[i] for i in waiting])
                least.update({i: (version, target) for at, i in enumerate(waiting) if at not in no})
    rows = ["%s %s | %s | %s" % (*least[i], " ".join(t for t in TARGETS if i not in newest[t]), instruction)
            for i, instruction in enumerate(instructions)]
    FILE.write_text("\n".join(comments + rows) + "\n")


if __name__ == "__main__":
    main()
