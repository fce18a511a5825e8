# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traced functions of JAX, and StableHLO of other front ends, to linalg; and errors at the user's line.

`_lower` and `_stablehlo` are the ways in. Nothing here knows steps, states or libraries.
"""
