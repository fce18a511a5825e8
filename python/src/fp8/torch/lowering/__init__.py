# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of PyTorch to linalg: decompositions by family, what torch-mlir gets wrong or lacks, and its passes.

`_import.to_linalg` is the way in. Nothing here knows backends, steps or state.
"""
