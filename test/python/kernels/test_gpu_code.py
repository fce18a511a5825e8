# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's report of its code for GPUs, and its PTX text: the instruction of each product, kernels
named after sites, lines of the user's source, multiply-adds only where they are meant."""
import json
import re
import subprocess

import pytest

CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]

# An FP8 product; a product that --keep leaves in bf16; one of f32; a sum of a product of elements.
PROGRAM = """
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<128x256xbf16>, %v: tensor<256x128xbf16>, %f: tensor<64x64xf32>)
    -> (tensor<64x128xbf16>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : bf16
  %zero32 = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<64x256xbf16>
  %i1 = linalg.fill ins(%zero : bf16) outs(%e1 : tensor<64x256xbf16>) -> tensor<64x256xbf16>
  %h = linalg.matmul ins(%x, %w : tensor<64x128xbf16>, tensor<128x256xbf16>) outs(%i1 : tensor<64x256xbf16>) -> tensor<64x256xbf16>
      loc("jit(step)/h0/fc1/dot_general")
  %e2 = tensor.empty() : tensor<64x128xbf16>
  %i2 = linalg.fill ins(%zero : bf16) outs(%e2 : tensor<64x128xbf16>) -> tensor<64x128xbf16>
  %y = linalg.matmul ins(%h, %v : tensor<64x256xbf16>, tensor<256x128xbf16>) outs(%i2 : tensor<64x128xbf16>) -> tensor<64x128xbf16>
      loc("jit(step)/head/dot_general")
  %e3 = tensor.empty() : tensor<64x64xf32>
  %i3 = linalg.fill ins(%zero32 : f32) outs(%e3 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%f, %f : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i3 : tensor<64x64xf32>) -> tensor<64x64xf32>
      loc("jit(step)/gate/dot_general")
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%f : tensor<64x64xf32>) outs(%e3 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %0, %a : f32
    linalg.yield %1 : f32
  } -> tensor<64x64xf32> loc("jit(step)/h0/square/add")
  return %y, %p, %s : tensor<64x128xbf16>, tensor<64x64xf32>, tensor<64x64xf32>
}
"""


@pytest.fixture(scope="module")
def compiled(bin_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu_code")
    (folder / "step.mlir").write_text(PROGRAM)
    kept = {}

    def compile(chip):
        """The code of each site of the report; the text of each kernel in PTX."""
        if chip not in kept:
            done = subprocess.run([str(bin_dir / "fp8-compile"), "step.mlir", "--target=" + chip, "--recipe=delayed", "--keep=head|gate",
                                   "--report=json:report", "--emit=ptx", "-o", "ptx"], cwd=folder, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
            sites = json.loads((folder / "report").read_text())["sites"]
            ptx = (folder / "ptx").read_text()
            parts = re.split(r"^\.visible \.entry (\w+)\(", ptx, flags=re.M)
            kept[chip] = {site["site"]: site["code"] for site in sites}, dict(zip(parts[1::2], parts[2::2])), ptx
        return kept[chip]

    return compile


# By chip: what the report says of the FP8 product and of the one in bf16, and what the text of their kernels has.
FP8, BF16 = "e4m3·e4m3", "bf16·bf16"
INSTRUCTIONS = {
    "sm_89": [(r"mma\.sync\.m16n8k32 " + FP8, r"mma\.sync\.aligned\.m16n8k32\.row\.col\.f32\.e4m3\.e4m3\.f32"),
              (r"mma\.sync\.m16n8k16 " + BF16, r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32")],
    "sm_90a": [(r"wgmma\.mma_async\.m64n\d+k32 " + FP8, r"wgmma\.mma_async\.sync\.aligned\.m64n\d+k32\.f32\.e4m3\.e4m3"),
               (r"wgmma\.mma_async\.m64n\d+k16 " + BF16, r"wgmma\.mma_async\.sync\.aligned\.m64n\d+k16\.f32\.bf16\.bf16")],
    "sm_100a": [(r"tcgen05\.mma m\d+n\d+k32 " + FP8, r"tcgen05\.mma\.cta_group::1\.kind::f8f6f4"),
                (r"tcgen05\.mma m\d+n\d+k16 " + BF16, r"tcgen05\.mma\.cta_group::1\.kind::f16")],
    "sm_120a": [(r"mma\.sync\.m16n8k32 block_scale " + FP8, r"mma\.sync\.aligned\.m16n8k32\.row\.col\.kind::mxf8f6f4\.block_scale"),
                (r"mma\.sync\.m16n8k16 " + BF16, r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32")],
}
TENSOR_CORES = re.compile(r"\b(?:mma\.sync|wgmma\.mma_async|tcgen05\.mma)\.\S*")


@pytest.mark.parametrize("chip", CHIPS)
def test_the_report_and_the_text_name_one_instruction(compiled, chip):
    sites, kernels, _ = compiled(chip)
    assert set(sites) == {"h0/fc1", "head", "gate"}
    for site, (said, written) in zip(["h0/fc1", "head"], INSTRUCTIONS[chip]):
        assert re.fullmatch(said, sites[site]), sites[site]
        found = set(TENSOR_CORES.findall(kernels["kernel_product_fprop_" + site.replace("/", "_")]))
        assert len(found) == 1 and re.match(written, found.pop()), found
    assert sites["gate"] == "fma.rn.f32 f32·f32"
    assert "fma.rn.f32" in kernels["kernel_product_fprop_gate"]


@pytest.mark.parametrize("chip", CHIPS)
def test_kernels_are_named_after_sites_and_have_the_lines_of_the_source(compiled, chip):
    _, kernels, ptx = compiled(chip)
    files = dict(re.findall(r'^\s*\.file\s+(\d+) "(.*)"', ptx, flags=re.M))
    starts = {"kernel_product_fprop_h0_fc1": "  %h = ", "kernel_product_fprop_head": "  %y = ", "kernel_product_fprop_gate": "  %p = ",
              "kernel_elementwise_h0_square": "    %0 = arith.mulf"}
    assert set(starts) < set(kernels)
    for name, start in starts.items():
        first = next(i for i, line in enumerate(PROGRAM.splitlines(), 1) if line.startswith(start))
        places = {(files[file], int(line)) for file, line in re.findall(r"^\s*\.loc\s+(\d+) (\d+) \d+", kernels[name], flags=re.M)}
        assert ("step.mlir", first) in places, (name, places)


def test_copied_operands_are_told_by_the_report(bin_dir, tmp_path):
    """An argument's rows are 100 bytes. The text counts copies apart from instructions, and no remark is printed."""
    (tmp_path / "step.mlir").write_text(PROGRAM.replace("64x128xbf16", "64x50xbf16").replace("128x256xbf16", "50x256xbf16")
                                        .replace("256x128xbf16", "256x50xbf16"))
    command = [str(bin_dir / "fp8-compile"), "step.mlir", "--target=sm_89", "--recipe=none", "--report=json:report", "--report=text",
               "-o", "step.so"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    code = {site["site"]: site["code"] for site in json.loads((tmp_path / "report").read_text())["sites"]}
    note = "left operand copied first: its rows are not multiples of 16 bytes"
    assert code["h0/fc1"] == "mma.sync.m16n8k16 bf16·bf16; " + note
    assert done.stderr == "" and "copied" not in code["gate"]
    assert "  1 of them: " + note + "\n" in done.stdout and "  2: mma.sync.m16n8k16 bf16·bf16\n" in done.stdout


@pytest.mark.parametrize("chip", CHIPS)
def test_fused_multiply_adds_are_those_of_products(compiled, chip):
    """A multiplication and an addition of the program are two roundings."""
    _, kernels, _ = compiled(chip)
    assert [name for name, text in kernels.items() if re.search(r"\bfma\.rn\.(?:ftz\.)?f32", text)] == ["kernel_product_fprop_gate"]
    square = kernels["kernel_elementwise_h0_square"]
    assert "mul.rn.f32" in square and "add.rn.f32" in square
