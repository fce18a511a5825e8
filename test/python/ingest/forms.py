# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All forms of a matrix product: named operations and generics; surrounded_forms.py has the others."""

import numpy as np

from form import F64, MULTIPLY_ADD, WIDEN, Form, maps, named, summed
from harness import BF16, F16, F32, MLIR_NAMES
from surrounded_forms import added_forms, broadcasting_forms, packed_forms, surrounded_forms, two_operation_forms


def named_forms():
    """Operations by name, and linalg.contract."""
    forms = [
        Form("matmul", "mk,kn->mn", named("matmul")),
        Form("matmul_tn", "km,kn->mn", named("matmul", attributes=maps("mnk", "km", "kn", "mn") + "\n")),
        Form("matmul_nt", "mk,nk->mn", named("matmul", attributes=maps("mnk", "mk", "nk", "mn") + "\n")),
        Form("matmul_tt", "km,nk->mn", named("matmul", attributes=maps("mnk", "km", "nk", "mn") + "\n")),
        Form("batch_matmul", "bmk,bkn->bmn", named("batch_matmul")),
        Form(
            "batch_matmul_ta",
            "bkm,bkn->bmn",
            named("batch_matmul", attributes=maps("bmnk", "bkm", "bkn", "bmn") + "\n"),
        ),
        Form(
            "batch_matmul_tb",
            "bmk,bnk->bmn",
            named("batch_matmul", attributes=maps("bmnk", "bmk", "bnk", "bmn") + "\n"),
        ),
        Form(
            "batch_matmul_shared",
            "bmk,kn->bmn",
            named("batch_matmul", attributes=maps("bmnk", "bmk", "kn", "bmn") + "\n"),
        ),
        Form("batch_reduce_matmul", "bmk,bkn->mn", named("batch_reduce_matmul"), dims="bmnk"),
        Form("matvec", "mk,k->m", named("matvec")),
        Form("vecmat", "k,kn->n", named("vecmat")),
        Form("batch_matvec", "bmk,bk->bm", named("batch_matvec")),
        Form("batch_vecmat", "bk,bkn->bn", named("batch_vecmat")),
        Form("dot", "k,k->", named("dot")),
        Form("mmt4d", "mkpl,nkql->mnpq", named("mmt4d"), dims="mnkpql"),
        Form("batch_mmt4d", "bmkpl,bnkql->bmnpq", named("batch_mmt4d"), dims="bmnkpql"),
        Form("contract", "mk,kn->nm", named("contract", attributes=maps("mnk", "mk", "kn", "nm") + " ")),
        Form(
            "contract_many",
            "bmlpk,lkqbn->pbnqm",
            named("contract", attributes=maps("bmpnqlk", "bmlpk", "lkqbn", "pbnqm") + " "),
            dims="bmpnqlk",
        ),
    ]
    for half in (BF16, F16):
        for out in (half, F32):
            name = f"matmul_{MLIR_NAMES[half]}_{MLIR_NAMES[out]}"
            forms.append(Form(name, "mk,kn->mn", named("matmul"), types=(half, half), out=out, product=out))
    return forms


def generic_forms():
    """linalg.generic: what its body may look like."""
    words, spec = ("mk", "kn", "mn"), "mk,kn->mn"
    narrow = "%p = arith.mulf %u, %v : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32"
    bodies = {
        "generic": MULTIPLY_ADD,
        "swapped_factors": MULTIPLY_ADD.replace("%x, %y", "%y, %x"),
        "swapped_sum": MULTIPLY_ADD.replace("%acc, %p", "%p, %acc"),
        "fast_math": MULTIPLY_ADD.replace("%x, %y", "%x, %y fastmath<reassoc,contract>").replace(
            "%acc, %p", "%acc, %p fastmath<fast>"
        ),
        "fma": "%s = math.fma %x, %y, %acc : f32; linalg.yield %s : f32",
    }
    forms = [Form(name, spec, summed("mnk", words, body)) for name, body in bodies.items()]
    negated = {
        "negated_factor": "%n = arith.negf %x : f32; %p = arith.mulf %n, %y : f32; %s = arith.addf %acc, %p : f32",
        "negated_other_factor": "%n = arith.negf %y : f32; %p = arith.mulf %x, %n : f32; %s = arith.addf %acc, %p : f32",
        "negated_product": "%p = arith.mulf %x, %y : f32; %n = arith.negf %p : f32; %s = arith.addf %acc, %n : f32",
        "subtracted": "%p = arith.mulf %x, %y : f32; %s = arith.subf %acc, %p : f32",
    }
    for name, body in negated.items():
        forms.append(Form(name, spec, summed("mnk", words, body + "; linalg.yield %s : f32"), lhs=np.negative))
    scaled = "%h = arith.constant 0.5 : f32; %n = arith.mulf %x, %h : f32; %p = arith.mulf %n, %y : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32"
    forms += [
        Form("scaled_factor", spec, summed("mnk", words, scaled), lhs=lambda x: x / 2),
        Form(
            "cast_inside",
            spec,
            summed("mnk", words, WIDEN.format("bf16") + narrow, ("bf16", "bf16", "f32")),
            types=(BF16, BF16),
        ),
        Form(
            "one_cast_inside",
            spec,
            summed(
                "mnk",
                words,
                "%u = arith.extf %x : f16 to f32; %p = arith.mulf %u, %y : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32",
                ("f16", "f32", "f32"),
            ),
            types=(F16, F32),
        ),
        Form(
            "rounded_inside",
            spec,
            summed(
                "mnk",
                words,
                "%n = arith.truncf %x : f32 to bf16; %u = arith.extf %n : bf16 to f32; %p = arith.mulf %u, %y : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32",
            ),
            lhs=lambda x: x.astype(BF16),
        ),
        Form(
            "narrow_accumulator",
            spec,
            summed("mnk", words, MULTIPLY_ADD.replace("f32", "bf16"), ("bf16",) * 3),
            types=(BF16, BF16),
            out=BF16,
            product=BF16,
        ),
        Form(
            "narrow_yield",
            spec,
            summed(
                "mnk",
                words,
                WIDEN.format("bf16")
                + "%c = arith.extf %acc : bf16 to f32; "
                + narrow.replace("%acc", "%c").replace(
                    "linalg.yield %s : f32", "%t = arith.truncf %s : f32 to bf16; linalg.yield %t : bf16"
                ),
                ("bf16",) * 3,
            ),
            types=(BF16, BF16),
            out=BF16,
            product=BF16,
        ),
        Form(
            "several_dims",
            "bcmpkl,nklcbq->cnmbqp",
            summed("bcmpnqkl", ("bcmpkl", "nklcbq", "cnmbqp"), MULTIPLY_ADD),
            dims="bcmpnqkl",
        ),
        Form(
            "integers_converted_inside",
            spec,
            summed(
                "mnk",
                words,
                "%v = arith.sitofp %y : i32 to f32; %p = arith.mulf %x, %v : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32",
                ("f32", "i32", "f32"),
            ),
            types=(F32, np.dtype(np.int32)),
            rhs=lambda b: b.astype(F32),
        ),
        Form(
            "f64_into_f32",
            spec,
            summed(
                "mnk",
                words,
                "%e = arith.extf %acc : f32 to f64; %p = arith.mulf %x, %y : f64; %s = arith.addf %e, %p : f64; %t = arith.truncf %s : f64 to f32; linalg.yield %t : f32",
                ("f64", "f64", "f32"),
            ),
            types=(F64, F64),
            kept=True,
        ),
        Form(
            "f64_added_to_bf16",
            spec,
            summed(
                "mnk",
                words,
                "%e = arith.extf %acc : bf16 to f64; %p = arith.mulf %x, %y : f64; %s = arith.addf %e, %p : f64; %t = arith.truncf %s : f64 to bf16; linalg.yield %t : bf16",
                ("f64", "f64", "bf16"),
                init="%c",
            ),
            types=(F64, F64),
            out=BF16,
            added=BF16,
            kept=True,
        ),
        Form("k_first", "mkl,lkn->mn", summed("lmkn", ("mkl", "lkn", "mn"), MULTIPLY_ADD), dims="lmkn"),
        Form("unit_dims", "umk,kno->uomn", summed("uomnk", ("umk", "kno", "uomn"), MULTIPLY_ADD)),
        Form("unit_k", "mu,un->mn", summed("mnu", ("mu", "un", "mn"), MULTIPLY_ADD)),
    ]
    for letter in "mnk":
        forms.append(Form(f"zero_{letter}", spec, named("matmul"), sizes={letter: 0}))
    forms.append(Form("zero_batch", "bmk,bkn->bmn", named("batch_matmul"), sizes={"b": 0}))
    return forms


def build_forms():
    groups = (
        named_forms,
        generic_forms,
        surrounded_forms,
        packed_forms,
        added_forms,
        broadcasting_forms,
        two_operation_forms,
    )
    return {form.name: form for group in groups for form in group()}
