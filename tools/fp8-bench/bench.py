# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of `fp8-bench compile`, `step`, `products`, `recipes`, `collectives`,
`checkpoint`, `kernels`, `predict`, `python` and `attention`; the program fp8-bench starts it."""

import argparse
import os
import pathlib
import sys
from typing import NoReturn

HERE = pathlib.Path(os.path.abspath(__file__)).parent
# Beside this folder in a build and an installation, under python/ in the sources.
EXAMPLES = next((p for p in (HERE.parent / "examples/gpt", HERE.parents[1] / "python/examples/gpt") if p.is_dir()), HERE)
sys.path.append(str(EXAMPLES))

import attention  # noqa: E402
import checkpoint  # noqa: E402
import collectives  # noqa: E402
import compile_time  # noqa: E402
import kernels  # noqa: E402
import package  # noqa: E402
import peers  # noqa: E402
import predict  # noqa: E402
import product_speed  # noqa: E402
import recipes  # noqa: E402
import results  # noqa: E402
import session  # noqa: E402
import step_time  # noqa: E402
from failure import Failure  # noqa: E402
from readers import names, numbers, output, positive, shapes  # noqa: E402

BENCHMARKS = {"compile": compile_time.measure, "step": step_time.measure, "products": product_speed.measure}
EXAMPLE = """examples:
  fp8-bench step                                    this compiler alone
  fp8-bench step --install=jax                      installs JAX outside of the checkout, then measures beside XLA
  fp8-bench step --with=torch --torch-python=/opt/torch/bin/python --networks=gpt,mlp
  fp8-bench products --cpu=x86-64-v3 --json=avx2.json
"""
KERNELS_EXAMPLE = """examples:
  fp8-bench kernels python/examples/gpt/gpt.mlir --target=sm_89,sm_90a
  fp8-bench kernels step.mlir --no-run --target=sm_100a --kernels=.
"""
PREDICT_EXAMPLE = """examples:
  fp8-bench predict python/examples/gpt/gpt.mlir --target=sm_90a,sm_100a
  fp8-bench predict step.mlir --recipe=block --option=--attention=written --kernels=30
"""
RECIPES_EXAMPLE = """examples:
  fp8-bench recipes --plot=losses.png
  fp8-bench recipes --steps=100 --variants='row|block' --variant='mine=--recipe=block --keep=h0'
"""
CHECKPOINT_EXAMPLE = """examples:
  fp8-bench checkpoint --mib=2048 --folder=/data
"""
COLLECTIVES_EXAMPLE = "example:\n  fp8-bench collectives --ranks=2\n"
PYTHON_EXAMPLE = """examples:
  fp8-bench python
  fp8-bench python --with=torch --rounds=5
  fp8-bench python --jax-python=/opt/jax/bin/python
"""
ATTENTION_EXAMPLE = """examples:
  fp8-bench attention
  fp8-bench attention --tokens=8192 --recipe=none,delayed --attention=fused --rounds=1
"""
# These take options of their own.
ALONE = {
    "attention": (attention, ATTENTION_EXAMPLE),
    "checkpoint": (checkpoint, CHECKPOINT_EXAMPLE),
    "collectives": (collectives, COLLECTIVES_EXAMPLE),
    "kernels": (kernels, KERNELS_EXAMPLE),
    "predict": (predict, PREDICT_EXAMPLE),
    "recipes": (recipes, RECIPES_EXAMPLE),
    "python": (package, PYTHON_EXAMPLE),
}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message}; see {self.prog} --help")


def add_common(parser: Parser, known_peers: list[str]) -> None:
    parser.add_argument(
        "--with",
        dest="peers",
        metavar="LIST",
        type=names(known_peers),
        default=known_peers,
        help=f"peers to measure beside: {','.join(known_peers)} (default; those that are here)",
    )
    parser.add_argument(
        "--install", metavar="LIST", type=names(list(peers.INSTALLS)), default=[], help=f"install peers first, in {peers.folder()}: {', '.join(peers.INSTALLS)}"
    )
    for name in known_peers:
        parser.add_argument(f"--{name}-python", metavar="PYTHON", help=f"an interpreter that has {peers.TITLES[name]}")
    parser.add_argument("--cpu", default="native", metavar="NAME", help="processor to compile for; x86-64-v3 holds the peers to AVX2 too (default: native)")
    parser.add_argument("--sums", choices=["exact", "auto", "hardware"], default="exact", help="how fp8-compile sums products of bf16 and FP8 (default: exact)")
    parser.add_argument("--rounds", type=positive(int), default=3, metavar="N", help="rounds; the least time counts (default: 3)")
    parser.add_argument("--json", type=output, metavar="FILE", help="also write everything to FILE")
    parser.add_argument("--plot", type=output, metavar="FILE.png", help="also draw bars (needs matplotlib)")
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), metavar="DIR", help="folder of fp8-compile and fp8-run (default: that of fp8-bench)"
    )
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)  # LLVM's name of this processor


def parser_of(benchmark: str) -> Parser:
    about = {"compile": compile_time, "step": step_time, "products": product_speed}[benchmark].__doc__ or ""
    parser = Parser(
        prog=f"fp8-bench {benchmark}",
        description="Measures " + about.split(": ", 1)[1],
        epilog=EXAMPLE,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common(parser, ["jax"] if benchmark == "compile" else ["jax", "torch"])
    if benchmark != "products":
        recipes = {"compile": ["delayed"], "step": step_time.RECIPES}[benchmark]
        parser.add_argument(
            "--recipe", type=lambda text: text.split(","), default=recipes, metavar="LIST", help=f"recipes of fp8-compile (default: {','.join(recipes)})"
        )
    if benchmark == "compile":
        parser.add_argument("--layers", type=numbers, default=[1, 4, 16], metavar="LIST", help="layers of the GPT (default: 1,4,16)")
        return parser
    parser.add_argument("--seconds", type=positive(float), default=0.5, metavar="S", help="measure for at least S seconds in each round (default: 0.5)")
    if benchmark == "step":
        known = list(step_time.NETWORKS)
        parser.add_argument("--networks", type=names(known), default=known, metavar="LIST", help=f"default: {','.join(known)}")
    else:
        parser.add_argument(
            "--shapes",
            type=shapes,
            default=product_speed.SHAPES,
            metavar="LIST",
            help="MxNxK,... (default: " + ",".join("x".join(map(str, s)) for s in product_speed.SHAPES) + ")",
        )
    return parser


def run(arguments: list[str]) -> None:
    if arguments and arguments[0] in ALONE:
        module, example = ALONE[arguments[0]]
        parser = Parser(
            prog=f"fp8-bench {arguments[0]}",
            description=module.__doc__,
            epilog=example,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_options(parser)
        print("\n".join(module.measure(parser.parse_args(arguments[1:]), EXAMPLES)))
        return
    if not arguments or arguments[0] not in BENCHMARKS:
        raise Failure(f"say what to measure: fp8-bench {', '.join([*BENCHMARKS, *ALONE])}")
    options = parser_of(arguments[0]).parse_args(arguments[1:], argparse.Namespace(benchmark=arguments[0]))
    if options.plot:
        results.check_plot()
    with session.start(options, EXAMPLES) as current:
        found = BENCHMARKS[options.benchmark](current, EXAMPLES)
        print(("\r\033[K" if sys.stdout.isatty() else "") + "\n".join([*current.header(), "", *results.show(found)]))
        if options.json:
            results.write_json(options.json, found, current.about)
        if options.plot:
            results.draw(options.plot, found, ", ".join(current.header()[:2]))


if __name__ == "__main__":
    try:
        run(sys.argv[1:])
    except (Failure, OSError) as failure:
        sys.exit(("\n" if sys.stdout.isatty() else "") + f"fp8-bench: error: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
