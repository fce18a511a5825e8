# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes gpt.mlir: the training step and its evaluation as linalg on tensors.

    python export.py [--f32] [FILE]

With --f32 all of it is in f32, for the compiler to choose the precision (--mixed-precision).
Everything is jaxlib's own: JAX lowers to StableHLO, jaxlib's MLIR passes lower
that to linalg. Each function is lowered by itself; then the two modules become one.
"""

import argparse
import os

import jax
import jax.numpy as jnp
import model
import parameters as sizes
from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import func, stablehlo

stablehlo.register_stablehlo_passes()
jax.config.update("jax_traceback_in_locations_limit", 0)  # name stacks, not paths

PASSES = "inline,func.func(chlo-legalize-to-stablehlo,stablehlo-legalize-to-linalg,canonicalize,cse)"


def arguments():
    """The shapes and types of main's arguments: params, moment1, moment2, steps, tokens."""
    values = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in sizes.shapes().items()}
    tokens = jax.ShapeDtypeStruct((sizes.BATCH, sizes.SEQUENCE + 1), jnp.int32)
    return values, values, values, jax.ShapeDtypeStruct((), jnp.float32), tokens


def lower(function, args, donated=()):
    """The function as a StableHLO module, in a context of its own."""
    return jax.jit(function, donate_argnums=donated).lower(*args).compiler_ir("stablehlo")


def functions(module):
    return [op for op in module.body.operations if isinstance(op, func.FuncOp)]


def rename(module, public):
    """Calls main `public`, and gives the functions it calls names that no other module has."""
    with module.context:
        for function in functions(module):
            old = function.name.value
            new = public if old == "main" else f"{public}.{old.lstrip('_')}"
            for user in functions(module):
                ir.SymbolTable.replace_all_symbol_uses(old, new, user.operation)
            ir.SymbolTable.set_symbol_name(function.operation, new)


HEADER = """\
// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The example GPT's training step (@main) and evaluation (@evaluate). Generated
// from model.py by export.py; do not edit.

"""


def text(module):
    return module.operation.get_asm(enable_debug_info=True, large_elements_limit=None)


def merge(modules):
    """One module with the functions of all, in the given order."""
    context = jax_mlir.make_ir_context()
    merged = ir.Module.parse(text(modules[0]), context)
    for module in modules[1:]:
        parsed = ir.Module.parse(text(module), context)
        for function in functions(parsed):
            merged.body.append(function.operation)
    return merged


def to_linalg(modules):
    """One module in linalg from StableHLO modules, by the names that their main functions get."""
    for name, module in modules.items():
        rename(module, name)
    merged = merge(list(modules.values()))
    with merged.context:
        passmanager.PassManager.parse(f"builtin.module({PASSES})").run(merged.operation)
    return merged


def export():
    params, moment1, moment2, steps, tokens = arguments()
    main = lower(model.main, (params, moment1, moment2, steps, tokens), donated=(0, 1, 2, 3))
    evaluate = lower(model.evaluate, (params, tokens))
    return HEADER + text(to_linalg({"main": main, "evaluate": evaluate}))


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Writes the training step and its evaluation as linalg on tensors.")
    parser.add_argument("--f32", action="store_true", help="all of it in f32, for the compiler to choose the precision")
    parser.add_argument("file", nargs="?", help="the file to write (default: gpt.mlir or gpt_f32.mlir beside this script)")
    options = parser.parse_args()
    if options.f32:
        model.NARROW = jnp.float32
    with open(options.file or os.path.join(here, "gpt_f32.mlir" if options.f32 else "gpt.mlir"), "w") as file:
        file.write(export())
