# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of a matmul change no bit: the tasks that threads compute, and matmuls that resume the sums of others."""
import numpy as np
import pytest

from harness import BF16, F16, F32, Program, assert_same_bits, random_generator, tensor_type


def build(bin_dir, folder, text):
    folder.mkdir()
    return Program(bin_dir, folder, text, "--recipe=none")


def test_tasks_write_their_own_columns(bin_dir, tmp_path, monkeypatch):
    """Tasks of columns whose parts have different numbers of panels. A task that writes more columns than it has
    writes old sums over those of the task behind it, if that is done already.
    """
    rows, values, out = tensor_type((2, 9, 30000), BF16), tensor_type((2, 11, 9), F16), tensor_type((2, 11, 30000), BF16)
    maps = ", ".join(f"affine_map<(h, i, j, e) -> ({dims})>" for dims in ("h, i, j", "h, e, i", "h, e, j"))
    program = build(bin_dir, tmp_path / "program", f"""
func.func @main(%p: {rows}, %g: {values}) -> {out} {{
  %e = tensor.empty() : {out}
  %y = fp8.matmul site("y") role(other) kinds(input, input) ins(%p, %g : {rows}, {values}) outs(%e : {out}) {{indexing_maps = [{maps}]}} -> {out}
  return %y : {out}
}}""")
    rng = random_generator(45)
    inputs = rng.standard_normal((2, 9, 30000)).astype(BF16), rng.standard_normal((2, 11, 9)).astype(F16)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (expected,) = program.call("main", *inputs)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    for _ in range(20):
        assert_same_bits(program.call("main", *inputs)[0], expected)
    exact = np.einsum("hij,hei->hej", *(array.astype(np.float64) for array in inputs))
    np.testing.assert_allclose(expected.astype(np.float64), exact, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("depth,cut", [(64, 32), (7, 3), (5000, 2500), (5000, 7), (4, 0), (4, 4)])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_resumed_sums(bin_dir, tmp_path, dtype, depth, cut):
    """Two matmuls of parts of K, the second one resuming the sums of the first, are one matmul."""
    rng = random_generator(44, depth, cut)
    rows, columns = 37, 53
    parts = [(cut, "a"), (depth - cut, "b")]
    arguments = ", ".join(f"%l{n}: {tensor_type((rows, k), dtype)}, %r{n}: {tensor_type((k, columns), dtype)}" for k, n in [*parts, (depth, "w")])
    maps = "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]"
    out = tensor_type((rows, columns), F32)
    matmul = lambda name, k, n, init, words="": (f'  {name} = fp8.matmul site("{name[1:]}") role(other) kinds(input, input) kept("as it is") {words}ins(%l{n}, %r{n} : '
                                                 f"{tensor_type((rows, k), dtype)}, {tensor_type((k, columns), dtype)}) outs({init} : {out}) {{{maps}}} -> {out}\n")
    text = (f"func.func @main({arguments}) -> ({out}, {out}) {{\n  %e = tensor.empty() : {out}\n" + matmul("%first", cut, "a", "%e")
            + matmul("%both", depth - cut, "b", "%first", "resume ") + matmul("%whole", depth, "w", "%e") + f"  return %both, %whole : {out}, {out}\n}}\n")
    left, right = rng.standard_normal((rows, depth)).astype(dtype), rng.standard_normal((depth, columns)).astype(dtype)
    both, whole = build(bin_dir, tmp_path / "program", text).call("main", left[:, :cut], right[:cut], left[:, cut:], right[cut:], left, right)
    assert_same_bits(both, whole)
    assert np.any(whole)
