# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A producer of casts that the tests of static and dynamic shapes share."""

# Yields 0 above the diagonal and bf16(v * times + shift - other) elsewhere, that value everywhere, and whether an element lies
# above the diagonal; `%zero` is a constant from outside.
MASKED_SUM = """
    ^bb0(%v: f32, %shift: f32, %times: f32, %other: bf16):
      %row = fp8.index 0
      %column = fp8.index 1
      %later = arith.cmpi ugt, %column, %row : index
      %p = arith.mulf %v, %times : f32
      %q = arith.addf %p, %shift : f32
      %w = arith.extf %other : bf16 to f32
      %u = arith.subf %q, %w : f32
      %h = arith.truncf %u : f32 to bf16
      %k = arith.extf %h : bf16 to f32
      %m = arith.select %later, %zero, %k : f32
      fp8.yield %m, %h, %later : f32, bf16, i1
"""
