# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms with other code around the product: views, casts, packs, sums, broadcast operands."""

import numpy as np

from form import MULTIPLY_ADD, SIZES, Form, cast, generic, maps, named, product, summed, transpose, zeros
from harness import BF16, F16, F32, tensor_type


def surrounded_forms():
    """Views, casts and transposes around a product."""
    spec = "mk,kn->mn"
    s = SIZES
    f32 = lambda word: tensor_type([s[d] for d in word], F32)
    bf16 = lambda word: tensor_type([s[d] for d in word], BF16)
    turn = transpose("t", "%b", "!B", f32("kn"), (1, 0))
    forms = [
        Form("transposed_weight", "mk,nk->mn", turn + named("matmul", b="%t", tb=f32("kn"))),
        Form(
            "generic_transpose",
            "mk,nk->mn",
            f"  %te = tensor.empty() : {f32('kn')}\n"
            + generic(
                "t", "kn", ("nk", "kn"), [("%b", "!B")], ("%te", f32("kn")), "linalg.yield %x : f32", ("f32", "f32")
            )
            + named("matmul", b="%t", tb=f32("kn")),
        ),
        Form(
            "transpose_chain",
            "mk,lnk->mln",
            transpose("t1", "%b", "!B", f32("nkl"), (1, 2, 0))
            + transpose("t2", "%t1", f32("nkl"), f32("kln"), (1, 2, 0))
            + named("contract", attributes=maps("mlnk", "mk", "kln", "mln") + " ", b="%t2", tb=f32("kln")),
        ),
        Form(
            "transposed_result",
            "mk,kn->nm",
            zeros("i", f32("mn"))
            + product("matmul", name="y", tr=f32("mn"))
            + transpose("r", "%y", f32("mn"), "!R", (1, 0)),
        ),
        Form(
            "extended_operands",
            spec,
            cast("u", "%a", (s["m"], s["k"]), BF16, F32)
            + cast("v", "%b", (s["k"], s["n"]), BF16, F32)
            + named("matmul", a="%u", b="%v", ta=f32("mk"), tb=f32("kn")),
            types=(BF16, BF16),
        ),
        Form(
            "linear_of_pytorch",
            "mk,nk->mn",
            transpose("t", "%b", "!B", bf16("kn"), (1, 0))
            + cast("u", "%a", (s["m"], s["k"]), BF16, F32)
            + cast("v", "%t", (s["k"], s["n"]), BF16, F32)
            + zeros("i", f32("mn"))
            + product("matmul", name="y", a="%u", b="%v", ta=f32("mk"), tb=f32("kn"), tr=f32("mn"))
            + cast("r", "%y", (s["m"], s["n"]), F32, BF16),
            types=(BF16, BF16),
            out=BF16,
            product=BF16,
        ),
        Form(
            "rounded_operand",
            spec,
            cast("u", "%a", (s["m"], s["k"]), F32, BF16) + named("matmul", a="%u", ta=bf16("mk")),
            types=(F32, BF16),
            lhs=lambda x: x.astype(BF16),
        ),
        Form(
            "rounded_result",
            spec,
            zeros("i", f32("mn"))
            + product("matmul", name="y", tr=f32("mn"))
            + cast("r", "%y", (s["m"], s["n"]), F32, F16),
            out=F16,
            product=F16,
        ),
        Form(
            "rounded_result_in_use_twice",
            spec,
            zeros("i", f32("mn"))
            + product("matmul", name="y", tr=f32("mn"))
            + cast("h", "%y", (s["m"], s["n"]), F32, BF16)
            + cast("w", "%h", (s["m"], s["n"]), BF16, F32)
            + "  %r = arith.addf %y, %w : !R\n",
            finish=lambda y: y + y.astype(BF16).astype(F32),
        ),
        Form(
            "collapsed",
            "bmk,kn->bmn",
            "  %u = tensor.collapse_shape %a [[0, 1], [2]] : !A into tensor<18x12xf32>\n"
            + zeros("i", "tensor<18x5xf32>")
            + product("matmul", name="y", a="%u", ta="tensor<18x12xf32>", tr="tensor<18x5xf32>")
            + "  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [3, 6, 5] : tensor<18x5xf32> into !R\n",
        ),
        Form(
            "collapsed_k",
            "blm,bln->mn",
            "  %u = tensor.collapse_shape %a [[0, 1], [2]] : !A into tensor<9x6xf32>\n  %v = tensor.collapse_shape %b [[0, 1], [2]] : !B into tensor<9x5xf32>\n"
            + named(
                "matmul",
                a="%u",
                b="%v",
                ta="tensor<9x6xf32>",
                tb="tensor<9x5xf32>",
                attributes=maps("mnk", "km", "kn", "mn") + "\n",
            ),
        ),
        Form(
            "expanded_operand",
            "bmk,kn->bmn",
            "  %u = tensor.expand_shape %a [[0, 1], [2]] output_shape [3, 6, 12] : !A into tensor<3x6x12xf32>\n"
            + named("contract", attributes=maps("bmnk", "bmk", "kn", "bmn") + " ", a="%u", ta="tensor<3x6x12xf32>"),
            shapes=((18, 12), (12, 5)),
        ),
        Form(
            "unit_dims_by_reshape",
            spec,
            "  %u = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 6, 12] : !A into tensor<1x6x12xf32>\n  %v = tensor.expand_shape %b [[0, 1], [2]] output_shape [1, 12, 5] : !B into tensor<1x12x5xf32>\n"
            + zeros("i", "tensor<1x6x5xf32>")
            + product(
                "batch_matmul",
                name="y",
                a="%u",
                b="%v",
                ta="tensor<1x6x12xf32>",
                tb="tensor<1x12x5xf32>",
                tr="tensor<1x6x5xf32>",
            )
            + "  %r = tensor.collapse_shape %y [[0, 1], [2]] : tensor<1x6x5xf32> into !R\n",
        ),
        Form(
            "cast_to_dynamic",
            spec,
            "  %u = tensor.cast %a : !A to tensor<?x12xf32>\n  %z = arith.constant 0.0 : f32\n  %n = arith.constant 6 : index\n  %e = tensor.empty(%n) : tensor<?x5xf32>\n  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>\n"
            + product("matmul", name="y", a="%u", ta="tensor<?x12xf32>", tr="tensor<?x5xf32>")
            + "  %r = tensor.cast %y : tensor<?x5xf32> to !R\n",
        ),
        Form(
            "sliced_weight",
            spec,
            "  %v = tensor.extract_slice %b[2, 0, 1] [1, 12, 5] [1, 1, 2] : !B to tensor<12x5xf32>\n"
            + named("matmul", b="%v", tb="tensor<12x5xf32>"),
            shapes=((6, 12), (4, 12, 11)),
            rhs=lambda b: b[2, :, 1::2],
        ),
        Form(
            "sliced_result",
            spec,
            zeros("i", "tensor<6x7xf32>")
            + product("matmul", name="y", tr="tensor<6x7xf32>")
            + "  %r = tensor.extract_slice %y[0, 1] [6, 5] [1, 1] : tensor<6x7xf32> to !R\n",
            shapes=((6, 12), (12, 7)),
            rhs=lambda b: b[:, 1:6],
            extents={"n": 7},
        ),
        Form(
            "broadcast_weight",
            "bmk,kn->bmn",
            f"  %we = tensor.empty() : {f32('bkn')}\n"
            + generic(
                "w", "bkn", ("kn", "bkn"), [("%b", "!B")], ("%we", f32("bkn")), "linalg.yield %x : f32", ("f32", "f32")
            )
            + named("batch_matmul", b="%w", tb=f32("bkn")),
        ),
        Form(
            "broadcast_named",
            "bmk,kn->bmn",
            f"  %we = tensor.empty() : {f32('bkn')}\n  %w = linalg.broadcast ins(%b : !B) outs(%we : {f32('bkn')}) dimensions = [0]\n"
            + named("batch_matmul", b="%w", tb=f32("bkn")),
        ),
        Form(
            "times_one",
            spec,
            "  %one = arith.constant 1.0 : f32\n  %ue = tensor.empty() : !A\n"
            + generic(
                "u",
                "mk",
                ("mk", "mk"),
                [("%a", "!A")],
                ("%ue", "!A"),
                "%m = arith.mulf %x, %one : f32; linalg.yield %m : f32",
                ("f32", "f32"),
            )
            + named("matmul", a="%u"),
        ),
        Form(
            "copied_operand",
            spec,
            "  %ue = tensor.empty() : !A\n  %u = linalg.copy ins(%a : !A) outs(%ue : !A) -> !A\n"
            + named("matmul", a="%u"),
        ),
    ]
    return forms


def packed_forms():
    """linalg.mmt4d with its operands packed into tiles, padded or not."""
    a, b, c, p, i = (
        "tensor<6x12xf32>",
        "tensor<12x5xf32>",
        "tensor<6x5xf32>",
        "tensor<{}x4x{}x3xf32>",
        "tensor<{}x{}x{}x{}xf32>",
    )

    def body(m, n, tile_m, tile_n):
        pad = "padding_value(%z : f32) " if m * tile_m != 6 or n * tile_n != 5 else ""
        pa, pb, pc = p.format(m, tile_m), p.format(n, tile_n), i.format(m, n, tile_m, tile_n)
        return (
            f"  %z = arith.constant 0.0 : f32\n  %pae = tensor.empty() : {pa}\n  %pbe = tensor.empty() : {pb}\n  %re = tensor.empty() : {c}\n"
            + f"  %pa = linalg.pack %a {pad}inner_dims_pos = [0, 1] inner_tiles = [{tile_m}, 3] into %pae : {a} -> {pa}\n"
            + f"  %pb = linalg.pack %b {pad}outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [{tile_n}, 3] into %pbe : {b} -> {pb}\n"
            + zeros("i", pc)
            + product("mmt4d", name="y", a="%pa", b="%pb", ta=pa, tb=pb, tr=pc)
            + f"  %r = linalg.unpack %y inner_dims_pos = [0, 1] inner_tiles = [{tile_m}, {tile_n}] into %re : {pc} -> {c}\n"
        )

    return [
        Form("packed", "mk,kn->mn", body(3, 1, 2, 5)),
        Form("packed_and_padded", "mk,kn->mn", body(2, 2, 4, 3), extents={"m": 8, "n": 6}),
    ]


def added_forms():
    """The operands that products are added to."""
    spec = "mk,kn->mn"
    forms = [
        Form("residual", spec, product("matmul", init="%c"), added=F32),
        Form(
            "residual_bf16", spec, product("matmul", init="%c"), added=BF16, types=(BF16, BF16), out=BF16, product=BF16
        ),
        Form(
            "residual_subtracted",
            spec,
            summed("mnk", ("mk", "kn", "mn"), MULTIPLY_ADD.replace("addf", "subf"), init="%c"),
            added=F32,
            lhs=np.negative,
        ),
        Form(
            "bias_as_init",
            "mk,kn->mn",
            "  %e = tensor.empty() : !R\n  %h = arith.constant dense<[1.0, 2.0, -3.0, 0.5, 8.0]> : tensor<5xf32>\n  %i = linalg.broadcast ins(%h : tensor<5xf32>) outs(%e : !R) dimensions = [0]\n"
            + product("matmul"),
            finish=lambda y: y + np.array([1, 2, -3, 0.5, 8], F32),
        ),
        Form(
            "filled_with_ones",
            spec,
            "  %o = arith.constant 1.0 : f32\n  %e = tensor.empty() : !R\n  %i = linalg.fill ins(%o : f32) outs(%e : !R) -> !R\n"
            + product("matmul"),
            finish=lambda y: y + np.float32(1),
        ),
        Form("zeros_constant", spec, "  %i = arith.constant dense<0.0> : !R\n" + product("matmul")),
        Form(
            "zeros_shared",
            spec,
            named("matmul", name="y") + product("matmul", name="v") + "  %r = arith.addf %y, %v : !R\n",
            finish=lambda y: y + y,
        ),
        Form(
            "zeros_behind_views",
            spec,
            zeros("h", "tensor<30xf32>")
            + "  %i = tensor.expand_shape %h [[0, 1]] output_shape [6, 5] : tensor<30xf32> into !R\n"
            + product("matmul"),
        ),
        Form("residual_after", spec, named("matmul", name="y") + "  %r = arith.addf %y, %c : !R\n", added=F32),
        Form(
            "transposed_residual",
            "mk,kn->nm",
            product("contract", init="%c", attributes=maps("mnk", "mk", "kn", "nm") + " "),
            added=F32,
        ),
    ]
    return forms


def broadcasting_forms():
    """Dimensions that only one value has: the product is repeated, or an operand is."""
    row = maps("mnk", "k", "kn", "mn") + "\n"
    return [
        Form(
            "repeated_result",
            "k,kn->n",
            named("matmul", attributes=row),
            shape=(6, 5),
            finish=lambda y: np.broadcast_to(y, (6, 5)),
        ),
        Form(
            "repeated_result_added",
            "k,kn->n",
            zeros("z", "!R") + "  %o = arith.constant dense<1.5> : !R\n" + product("matmul", init="%o", attributes=row),
            shape=(6, 5),
            finish=lambda y: np.broadcast_to(y, (6, 5)) + np.float32(1.5),
        ),
        Form(
            "operand_without_a_k",
            "mkl,knl->mn",
            summed("mnkl", ("mkl", "kn", "mn"), MULTIPLY_ADD),
            dims="mnkl",
            shapes=((6, 12, 3), (12, 5)),
            rhs=lambda b: np.repeat(b[:, :, None], 3, 2),
        ),
    ]


def two_operation_forms():
    """A multiplication and a sum of its own, as PyTorch writes a matrix times a vector."""
    f32 = lambda word: tensor_type([SIZES[d] for d in word], F32)
    multiply = lambda dims, first, second: f"  %pe = tensor.empty() : {f32(dims)}\n" + generic(
        "p",
        dims,
        (first, second, dims),
        [("%a", "!A"), ("%b", "!B")],
        ("%pe", f32(dims)),
        "%m = arith.mulf %x, %y : f32; linalg.yield %m : f32",
        ("f32",) * 3,
    )
    add = lambda dims, word: zeros("i", "!R") + generic(
        "r",
        dims,
        (dims, word),
        [("%p", f32(dims))],
        ("%i", "!R"),
        "%s = arith.addf %x, %acc : f32; linalg.yield %s : f32",
        ("f32",) * 2,
    )
    return [
        Form("matvec_in_two", "mk,k->m", multiply("mk", "mk", "k") + add("mk", "m")),
        Form("matmul_in_two", "mk,kn->mn", multiply("mnk", "mk", "kn") + add("mnk", "mn")),
        Form(
            "reduce_by_name",
            "mk,k->m",
            multiply("mk", "mk", "k")
            + zeros("i", "!R")
            + f"  %r = linalg.reduce {{ arith.addf }} ins(%p : {f32('mk')}) outs(%i : !R) dimensions = [1]\n",
        ),
    ]
