# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The needs of the kernels of attention, counted without a GPU: one head in bf16, forward and backward."""

import dataclasses
import pathlib
import re
import tempfile

import kernels
import results
from failure import Failure

# Of each kernel: what it computes, tensors of which it has own rows, and tensors that it streams for each tile.
WORK = {"attention": ("output", 2, 2), "attention_query_grad": ("dQ", 3, 2), "attention_key_grad": ("dK, dV", 4, 2)}
# Where the registers of a thread have no room for both gradients.
WORK_OF_TWO = {**WORK, "attention_value_grad": ("dV", 2, 2), "attention_key_grad": ("dK", 3, 2)}
# With a bias there is one kernel more. Each of its blocks has one tile: it reads the own rows of two tensors for every tile, too.
WORK_OF_BIAS = {"attention_score_grad1": ("dB", 0, 4)}
COLUMNS = ["registers", "spills", "sectors", "products", "instructions", "conflicts"]
ABOUT = """\
registers of a thread and bytes spilled, by ptxas; by the emulator, for one head: sectors, the bytes of memory that accesses touch,
beside every tensor once and the streamed ones once for each 128 rows that see them; products, two operations for each
multiply-add, beside scores x depth (4 for the output, 14 backward; half of the scores count under a causal mask, those in it of a window);
instructions of a thread for each score besides those of tensor cores and their loads from shared memory; bank conflicts. With a bias, of
tokens x tokens, every kernel reads it once, and one more writes its gradient in f32."""


@dataclasses.dataclass(frozen=True)
class Mask:
    """A row of scores sees its own key and `window` - 1 before it; all keys, if that is None."""

    name: str
    window: int | None

    def count_tiles(self, tokens: int) -> int:
        """The tiles of 128 x 128 scores that have a score which is seen."""
        tiles = -(-tokens // 128)
        if self.window is None:
            return tiles * tiles
        return sum(tile + 1 - max(0, 128 * tile - self.window + 1) // 128 for tile in range(tiles))

    def count_scores(self, tokens: int) -> float:
        """The scores that are seen; of a causal mask half of all."""
        if self.window is None:
            return tokens * tokens
        return tokens * tokens / 2 if self.window >= tokens else self.window * tokens - self.window * (self.window - 1) / 2


def step(tokens: int, depth: int, mask: Mask, has_bias: bool = False) -> str:
    """The program: attention as linalg, its scores an f32 tensor, probabilities in bf16. A bias has a gradient."""
    shapes = {"ij": f"tensor<{tokens}x{tokens}x", "i": f"tensor<{tokens}x", "id": f"tensor<{tokens}x{depth}x", "jd": f"tensor<{tokens}x{depth}x"}
    lines: list[str] = []

    def generic(name: str, out: str, kind: str, inputs: list[tuple[str, str, str]], body: list[str], start: str | None = None) -> None:
        """`out` and the second of an input are letters of dimensions; a result with `start` sums up or takes a maximum."""
        loops = "".join(dict.fromkeys("".join([out, *(letters for _, letters, _ in inputs)])))
        maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(x)})>" for x in [*(letters for _, letters, _ in inputs), out])
        kinds = ", ".join('"parallel"' if x in out else '"reduction"' for x in loops)
        kind_of = lambda letters, of: shapes[letters] + of + ">"
        result = kind_of(out, kind)
        lines.append(f"%{name}_e = tensor.empty() : {result}")
        if start:
            lines.append(f"%{name}_s = linalg.fill ins(%{start} : {kind}) outs(%{name}_e : {result}) -> {result}")
        lines.append(f"%{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({', '.join('%' + x for x, _, _ in inputs)} : "
                     f"{', '.join(kind_of(letters, of) for _, letters, of in inputs)}) outs(%{name}_{'s' if start else 'e'} : {result}) {{")
        arguments = ", ".join([*(f"%x{n}: {of}" for n, (_, _, of) in enumerate(inputs)), f"%out: {kind}"])
        lines.extend([f"^bb0({arguments}):", *body, f"linalg.yield %y : {kind}", f"}} -> {result}"])

    def matmul(name: str, out: str, a: tuple[str, str], b: tuple[str, str]) -> None:
        generic(name, out, "f32", [(*a, "bf16"), (*b, "bf16")], ["%a = arith.extf %x0 : bf16 to f32", "%b = arith.extf %x1 : bf16 to f32",
                "%ab = arith.mulf %a, %b : f32", "%y = arith.addf %out, %ab : f32"], "zero")

    def narrow(name: str, out: str, source: str) -> None:
        generic(name, out, "bf16", [(source, out, "f32")], ["%y = arith.truncf %x0 : f32 to bf16"])

    matmul("s", "ij", ("q", "id"), ("k", "jd"))
    scores, body = [("s", "ij", "f32")], ["%t = arith.mulf %x0, %scale : f32"]
    if has_bias:
        scores.append(("bias", "ij", "bf16"))
        body += ["%b = arith.extf %x1 : bf16 to f32", "%z = arith.addf %t, %b : f32"]
    hidden = ""
    if mask.window is not None:
        body += ["%i = linalg.index 0 : index", "%j = linalg.index 1 : index", "%later = arith.cmpi ugt, %j, %i : index"]
        hidden = "%later"
    if mask.window is not None and mask.window < tokens:
        body += [f"%window = arith.constant {mask.window} : index", "%end = arith.addi %j, %window : index",
                 "%old = arith.cmpi ule, %end, %i : index", "%hidden = arith.ori %later, %old : i1"]
        hidden = "%hidden"
    seen = "%z" if has_bias else "%t"
    generic("x", "ij", "f32", scores, [*body, f"%y = arith.select {hidden}, %lowest, {seen} : f32" if hidden else f"%y = arith.addf {seen}, %zero : f32"])
    generic("m", "i", "f32", [("x", "ij", "f32")], ["%y = arith.maximumf %out, %x0 : f32"], "lowest")
    generic("e", "ij", "f32", [("x", "ij", "f32"), ("m", "i", "f32")], ["%t = arith.subf %x0, %x1 : f32", "%y = math.exp %t : f32"])
    generic("l", "i", "f32", [("e", "ij", "f32")], ["%y = arith.addf %out, %x0 : f32"], "zero")
    generic("p", "ij", "f32", [("e", "ij", "f32"), ("l", "i", "f32")], ["%y = arith.divf %x0, %x1 : f32"])
    narrow("ph", "ij", "p")
    matmul("of", "id", ("ph", "ij"), ("v", "jd"))
    narrow("o", "id", "of")
    matmul("g", "ij", ("go", "id"), ("v", "jd"))
    generic("pg", "ij", "f32", [("p", "ij", "f32"), ("g", "ij", "f32")], ["%y = arith.mulf %x0, %x1 : f32"])
    generic("c", "i", "f32", [("pg", "ij", "f32")], ["%y = arith.addf %out, %x0 : f32"], "zero")
    generic("d", "ij", "bf16", [("p", "ij", "f32"), ("g", "ij", "f32"), ("c", "i", "f32")],
            ["%t = arith.subf %x1, %x2 : f32", "%u = arith.mulf %t, %x0 : f32", "%w = arith.mulf %u, %scale : f32", "%y = arith.truncf %w : f32 to bf16"])
    if has_bias:
        generic("db", "ij", "f32", [("p", "ij", "f32"), ("g", "ij", "f32"), ("c", "i", "f32")],
                ["%t = arith.subf %x1, %x2 : f32", "%y = arith.mulf %t, %x0 : f32"])
    for name, out, a, b in (("dv", "jd", ("ph", "ij"), ("go", "id")), ("dq", "id", ("d", "ij"), ("k", "jd")), ("dk", "jd", ("d", "ij"), ("q", "id"))):
        matmul(name + "f", out, a, b)
        narrow(name, out, name + "f")
    tensor = f"tensor<{tokens}x{depth}xbf16>"
    code, types = "\n  ".join(lines), [tensor] * 4 + [shapes["ij"] + "f32>"] * has_bias
    bias = f", %bias: {shapes['ij']}bf16>" if has_bias else ""
    return f"""func.func @main(%q: {tensor}, %k: {tensor}, %v: {tensor}, %go: {tensor}{bias}) -> ({', '.join(types)}) {{
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant {depth**-0.5:.9f} : f32
  {code}
  return %o, %dq, %dk, %dv{', %db' * has_bias} : {', '.join(types)}
}}
"""


def measure(
    tools: pathlib.Path, ptxas: str, chips: list[str], tokens: list[int], depths: list[int], has_bias: bool, window: int | None
) -> list[str]:
    """The lines to print: a table for each chip."""
    lines, masks = [ABOUT, ""], [Mask("full", None), Mask("causal", max(tokens))]
    if window is not None:
        masks.append(Mask(f"window {window}", window))
    for chip in chips:
        if chip not in kernels.CHIPS:
            raise Failure(f"argument --target: '{chip}' is none of {', '.join(kernels.CHIPS)}; see fp8-bench attention --help")
        rows: dict[str, dict[str, float]] = {}
        for count in tokens:
            for depth in depths:
                for mask in masks:
                    rows |= measure_step(tools, ptxas, chip, count, depth, mask, has_bias)
        lines += [chip, "", *results.table("kernel", rows, 2), ""]
    return lines


def measure_step(
    tools: pathlib.Path, ptxas: str, chip: str, tokens: int, depth: int, mask: Mask, has_bias: bool
) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="fp8-bench-") as scratch:
        program = pathlib.Path(scratch) / "attention.mlir"
        program.write_text(step(tokens, depth, mask, has_bias))
        options = ("--recipe=none", "--require-attention=.*")
        assembled = kernels.assemble(tools, ptxas, program, chip, *options)[0] if ptxas != "none" else {}
        counted = kernels.count(tools, program, chip, *options)
    rows: dict[str, dict[str, float]] = {}
    tiles = -(-tokens // 128)
    share = mask.count_tiles(tokens) / tiles**2
    work = WORK_OF_TWO if any("attention_value_grad" in name for name in counted.kernels) else WORK
    for word, (title, own, streamed) in (work | WORK_OF_BIAS if has_bias else work).items():
        (name,) = (name for name in counted.kernels if re.fullmatch(rf"kernel_{word}(_matmul\d+|_main)?", name))
        total, scores = counted.kernels[name], mask.count_scores(tokens)
        square = (2 * share + 4 * (title == "dB")) * tokens**2 if has_bias else 0.0  # bytes of the bias and its gradient
        cells = {"sectors": 32 * total["global_sectors"] / (2 * tokens * depth * (own + streamed * tiles * share) + square),
                 "products": total["tensor_operations"] / (scores * depth),
                 "instructions": counted.others[name] / scores, "conflicts": total["bank_conflicts"]}
        if name in assembled:
            cells |= {"registers": assembled[name].registers, "spills": assembled[name].spills}
        label = f"{title}, {mask.name}, {tokens} tokens, {depth}"
        rows[label] = {column: cells[column] for column in COLUMNS if column in cells}
    return rows
