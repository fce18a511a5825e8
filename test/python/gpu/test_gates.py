# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The conditions of fast kernels, checked without a GPU on whole programs: no spills and few registers by
ptxas, and counts of the emulator. `fp8-bench kernels` prints the same for any program."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools/fp8-bench"))

import kernels  # noqa: E402

PTXAS = shutil.which("ptxas")
MLP, MIXER = (ROOT / f"tools/fp8-bench/networks/{name}.mlir" for name in ("mlp", "mixer"))
GPT = ROOT / "python/examples/gpt/gpt.mlir"
REGISTERS = 65536  # of a multiprocessor, of every chip

# No size is a multiple of a tile.
PRODUCT = """
func.func @main(%x: tensor<200x144xbf16>, %w: tensor<144x96xbf16>) -> tensor<200x96xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<200x96xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<200x96xbf16>) -> tensor<200x96xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<200x144xbf16>, tensor<144x96xbf16>) outs(%f : tensor<200x96xbf16>) -> tensor<200x96xbf16>
  return %y : tensor<200x96xbf16>
}
"""


def is_built(name):
    """Whether the compiler has a kernel for the operation; other code becomes kernels as it stands."""
    return re.match(r"kernel_(product|quantize|amax|transpose|history)", name) and "_rows_" not in name

# A residual in f32, and a result that is rounded to bf16.
RESIDUAL = """
func.func @main(%x: tensor<256x128xbf16>, %w: tensor<128x256xbf16>, %r: tensor<256x256xf32>) -> tensor<256x256xTYPE> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<256x128xbf16>, tensor<128x256xbf16>) outs(%f : tensor<256x256xf32>) -> tensor<256x256xf32>
  %s = linalg.add ins(%y, %r : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  ROUNDED
  return %z : tensor<256x256xTYPE>
}
"""
TYPES = {"f32": "%z = tensor.cast %s : tensor<256x256xf32> to tensor<256x256xf32>",
         "bf16": "%z = arith.truncf %s : tensor<256x256xf32> to tensor<256x256xbf16>"}


@pytest.mark.skipif(not PTXAS, reason="ptxas is not installed")
@pytest.mark.parametrize("program, options", [
    (MLP, []), *(pytest.param(*case, marks=pytest.mark.slow) for case in [(MIXER, []), (GPT, []), (GPT, ["--keep=embed|head"])])])
@pytest.mark.parametrize("chip", kernels.CHIPS)
def test_registers(bin_dir, program, options, chip):
    found, warnings = kernels.assemble(bin_dir, PTXAS, program, chip, *options)
    assert not warnings
    built = {name: kernel for name, kernel in found.items() if is_built(name)}
    assert any("product" in name for name in built) and any("quantize" in name for name in built)
    for name, kernel in built.items():
        assert (kernel.spills, kernel.stack) == (0, 0), (name, kernel)
        assert kernel.shared <= 48 << 10, (name, kernel)
        # The kernels of wgmma and tcgen05 have a multiprocessor to themselves; a transposition of few columns of bytes, which
        # takes 168 registers, would spill otherwise. All others share it.
        alone = "transpose" in name or "product" in name and chip in ("sm_90a", "sm_100a")
        blocks = 1 if alone else 2
        assert blocks * kernel.threads * kernel.registers <= REGISTERS, (name, kernel)
    # Code without a kernel of its own: a register beside the call of a division may be spilled, no more.
    assert all(kernel.spills <= 32 for kernel in found.values()), found


@pytest.mark.parametrize("program", [MLP, pytest.param(GPT, marks=pytest.mark.slow)])
@pytest.mark.parametrize("recipe", ["delayed", "current"])
@pytest.mark.parametrize("chip", kernels.CHIPS)
def test_shared_kernels(bin_dir, program, recipe, chip, tmp_path):
    """Kernels that operations share are those that each would have been given."""
    subprocess.run([bin_dir / "fp8-compile", program, f"--recipe={recipe}", f"--target={chip}", "--emit=bufferize", "-o",
                    tmp_path / "step.mlir"], check=True)
    kernels_of_operations = ("fp8-attach-chip{chip=%s},func.func(fp8-bind-elements,fp8-parallelize-rows),scf-forall-to-for,"
                             "func.func(fp8-pad-rows),convert-fp8-to-gpu{check-sharing}" % chip)
    checked = subprocess.run([bin_dir / "fp8-opt", tmp_path / "step.mlir", f"--pass-pipeline=builtin.module({kernels_of_operations})"],
                             capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count("gpu.launch_func") > checked.stdout.count("func.func @kernel_") > 0


def up(value, step):
    return -(-value // step) * step


@pytest.mark.parametrize("chip", kernels.CHIPS)
def test_counts(bin_dir, tmp_path, chip):
    (tmp_path / "p.mlir").write_text(PRODUCT)
    counted = kernels.count(bin_dir, tmp_path / "p.mlir", chip, "--recipe=current", "--sites=all")
    m, n, k = 200, 96, 144
    assert counted.fp8_needed == 2 * m * n * k
    (product,) = (kernel for name, kernel in counted.kernels.items() if counted.products[name])
    if chip in ("sm_90a", "sm_100a"):  # the transposed product, in tiles of 128 x 16 x 128
        padded = 2 * up(m, 16) * up(n, 128) * up(k, 128)
    else:  # tiles of 128 x 128 x 64
        padded = 2 * up(m, 128) * up(n, 128) * up(k, 64)
    assert counted.fp8_operations == product["tensor_operations"] == padded
    assert product["global_written_bytes"] == 2 * m * n
    assert all(kernel["bank_conflicts"] == 0 for kernel in counted.kernels.values())
    # Two amaxes and two casts by tiles of 128 x 128; amaxes are cleared and scales computed together.
    assert sum(kernel["launches"] for kernel in counted.kernels.values()) == 7

    def traffic(kind):
        return {(k["global_read_bytes"], k["global_written_bytes"]) for name, k in counted.kernels.items() if name.startswith(kind)}

    operands = [(m * k, 4), (k * n, 2)]  # elements, tiles; the bytes are stored in the order that the product reads
    # Operands are read once; every warp takes the maximum of the amax, and every thread reads the scale.
    assert traffic("kernel_amax") == {(2 * size + tiles * 8 * 4, tiles * 8 * 4) for size, tiles in operands}
    assert traffic("kernel_quantize") == {(2 * size + tiles * 256 * 4, size + 4) for size, tiles in operands}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("chip", kernels.CHIPS)
def test_sectors_of_an_epilogue(bin_dir, tmp_path, chip, kind):
    """Accesses touch no less than halves of sectors: a thread of tcgen05 has 16 bytes of a row, four threads of the others
    have 8 columns of a row."""
    (tmp_path / "p.mlir").write_text(RESIDUAL.replace("ROUNDED", TYPES[kind]).replace("TYPE", kind))
    counted = kernels.count(bin_dir, tmp_path / "p.mlir", chip, "--recipe=current", "--sites=all")
    (product,) = (kernel for name, kernel in counted.kernels.items() if counted.products[name])
    residual, written = 4 * 256 * 256, product["global_written_bytes"]
    assert written == (4 if kind == "f32" else 2) * 256 * 256
    assert 32 * product["global_sectors"] <= product["global_read_bytes"] + residual + 2 * written


# The most launches of a step of the GPT in python/examples: it has 238 on sm_90a.
LAUNCHES = 260


@pytest.mark.parametrize("chip", kernels.CHIPS)
def test_launches_of_a_step(bin_dir, tmp_path, chip):
    """The update of all histories is one launch. (The body of a loop counts once; this program has none.)"""
    kernels.call(bin_dir / "fp8-compile", GPT, f"--target={chip}", "--recipe=delayed", "--emit=kernels", "-o", tmp_path / "step.mlir")
    text = (tmp_path / "step.mlir").read_text()
    host = re.search(r"func\.func public @main\(.*?(?=func\.func public|gpu\.module)", text, re.S)[0]
    launched = re.findall(r"gpu\.launch_func +@kernels::@(\w+)", host)
    assert "scf." not in host
    assert 100 < len(launched) <= LAUNCHES
    assert sum("history" in name for name in launched) == 1
