# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench products: GFLOP/s of one matrix product by shape, beside XLA and PyTorch."""

import functools
import pathlib

import compiler
import tensors
from compiler import Program
from results import Results, least
from session import Session

SHAPES = [(512, 512, 512), (1024, 1024, 1024), (1024, 4096, 1024), (1024, 1024, 4096), (2048, 2048, 2048), (256, 256, 16384)]
# Type, recipe, and whether all elements but one are so much smaller than the largest that they are subnormal in E4M3.
OURS = {"f32": ("f32", "none", False), "bf16": ("bf16", "none", False), "FP8": ("bf16", "current", False), "FP8, subnormal": ("bf16", "current", True)}
OUTLIER = 2.0**17  # beside elements of about 1: 448 / 2^17 is less than 2^-6
PEERS = {name: {f"{title} {kind}": kind for kind in ("f32", "bf16")} for name, title in (("jax", "XLA"), ("torch", "PyTorch"))}

PROGRAM = """\
func.func @main(%a: tensor<{m}x{k}x{t}>, %b: tensor<{k}x{n}x{t}>) -> tensor<{m}x{n}x{t}> {{
  %zero = arith.constant 0.0 : {t}
  %empty = tensor.empty() : tensor<{m}x{n}x{t}>
  %init = linalg.fill ins(%zero : {t}) outs(%empty : tensor<{m}x{n}x{t}>) -> tensor<{m}x{n}x{t}>
  %c = linalg.matmul ins(%a, %b : tensor<{m}x{k}x{t}>, tensor<{k}x{n}x{t}>) outs(%init : tensor<{m}x{n}x{t}>) -> tensor<{m}x{n}x{t}>
  return %c : tensor<{m}x{n}x{t}>
}}
"""


def compiled(session: Session, shape: tuple[int, int, int], kind: str, recipe: str, is_subnormal: bool) -> Program:
    m, n, k = shape
    source = session.tools.scratch / f"product-{m}-{n}-{k}-{kind}.mlir"
    source.write_text(PROGRAM.format(m=m, n=n, k=k, t=kind))
    first = OUTLIER if is_subnormal else None
    tensors.write(file := source.with_suffix(f".{is_subnormal}.safetensors"), {
        "0": compiler.values((m, k), 1.0, kind.upper(), first),
        "1": compiler.values((k, n), 1.0, kind.upper(), first),
    })
    library, _ = session.tools.compile(source, recipe, "--sites=all")
    return Program(session.tools, library, file)


def measure(session: Session, examples: pathlib.Path) -> Results:
    shapes: list[tuple[int, int, int]] = session.options.shapes
    columns = session.columns(PEERS)
    results = Results("GFLOP/s of a product", "M x N x K", list(OURS), list(columns), larger_is_better=True, decimals=0)
    advance = session.progress(len(shapes) * (len(OURS) + session.options.rounds * (len(OURS) + len(columns))))

    def peer(name: str, shape: tuple[int, int, int], kind: str) -> float:
        answer = session.peers[name].ask("product", shape=shape, kind=kind, seconds=session.options.seconds)
        return float(answer["seconds"])

    for shape in shapes:
        label = " x ".join(map(str, shape))
        measures = {}
        for name, ours in OURS.items():
            advance(f"{label}, compiling")
            measures[name] = functools.partial(compiled(session, shape, *ours).seconds, session.options.seconds)
        for title, (name, kind) in columns.items():
            measures[title] = functools.partial(peer, name, shape, kind)
        best = least(measures, session.options.rounds, lambda name, label=label: advance(f"{label}, {name}"))
        work = 2e-9 * shape[0] * shape[1] * shape[2]
        results.rows[label] = {name: work / max(seconds, 1e-9) for name, seconds in best.items()}
        for running in session.peers.values():
            running.ask("forget")
    return results
