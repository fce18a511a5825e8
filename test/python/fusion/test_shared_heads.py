# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys and values that a program repeats for the heads of a group: attention reads them as they are before, with the same bits."""
import re
import subprocess

import pytest
from attention import DIMS, Attention, affine
from test_attention import compare_step

from harness import random_generator


class Repeated(Attention):
    """A random program whose keys or values, or both, are repeated along the dimension of the group."""

    def __init__(self, rng):
        super().__init__(rng, "small")
        self.sizes |= {"b": 2, "h": int(rng.integers(1, 4)), "g": int(rng.integers(2, 4)), "i": 7, "j": 9}
        order = lambda dims: [str(d) for d in rng.permutation(list(dims))]
        self.maps |= {"key": order("bhjd"), "value": order("bhje")}
        self.repeated = {name: order([*self.maps[tensor], "g"]) for name, tensor in (("%k", "key"), ("%values", "value"))}
        if rng.integers(3) == 0:
            del self.repeated["%k" if rng.integers(2) else "%values"]
        self.written_names = set()

    def matmul(self, lines, name, lhs, rhs, dtype, dims):
        super().matmul(lines, name, self.repeat(lines, lhs), self.repeat(lines, rhs), dtype, dims)

    def repeat(self, lines, operand):
        name, dtype, dims = operand
        if name not in self.repeated:
            return operand
        repeated = self.repeated[name]
        out = self.type(dtype, repeated)
        loops = [d for d in DIMS if d in repeated]
        iterators = ", ".join(['"parallel"'] * len(loops))
        element = out.split("x")[-1].rstrip(">")
        if name not in self.written_names:
            lines += [f"{name}_e = tensor.empty() : {out}",
                      f"{name}_r = linalg.generic {{indexing_maps = [{affine(loops, dims)}, {affine(loops, repeated)}], iterator_types = [{iterators}]}} "
                      f"ins({name} : {self.type(dtype, dims)}) outs({name}_e : {out}) {{", f"^bb0(%a: {element}, %out: {element}):",
                      f"linalg.yield %a : {element}", f"}} -> {out}"]  # fmt: skip
        self.written_names.add(name)
        return f"{name}_r", dtype, repeated

    def step(self):
        self.written_names = set()
        return super().step()


@pytest.mark.parametrize("seed", range(8))
def test_keys_and_values_are_not_repeated(bin_dir, tmp_path, seed):
    rng = random_generator(55, seed)
    program = Repeated(rng)
    assert compare_step(bin_dir, tmp_path, program, rng)["reason"] == ""
    (tmp_path / "program.mlir").write_text(program.step())
    done = subprocess.run([bin_dir / "fp8-compile", tmp_path / "program.mlir", "--recipe=none", "--emit=fusion", "-o", "-"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"fp8\.attention(?:_grad)? ins\(%\w+, (%\w+), (%\w+)", done.stdout)
    assert found == [("%arg1", "%arg2")] * 2
