# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ATen as others that torch-mlir has, by family. `_decompose` and `_rewrites` choose among them."""
