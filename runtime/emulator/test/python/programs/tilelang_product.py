# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A product of matrices by TileLang, which compiles it with nvcc and takes tensors of PyTorch.

import sys

import tilelang
import tilelang.language as T
import torch

if torch.version.cuda is None:
    sys.exit(77)


@tilelang.jit(out_idx=[-1])
def product(m, n, k, rows, columns, depth):
    @T.prim_func
    def kernel(a: T.Tensor((m, k), "float16"), b: T.Tensor((k, n), "float16"), c: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=128) as (x, y):
            a_tile = T.alloc_shared((rows, depth), "float16")
            b_tile = T.alloc_shared((depth, columns), "float16")
            sums = T.alloc_fragment((rows, columns), "float32")
            T.clear(sums)
            for i in T.Pipelined(T.ceildiv(k, depth), num_stages=2):
                T.copy(a[y * rows, i * depth], a_tile)
                T.copy(b[i * depth, x * columns], b_tile)
                T.gemm(a_tile, b_tile, sums)
            T.copy(sums, c[y * rows, x * columns])

    return kernel


# Small integers: exact in any order.
a, b = (torch.randint(-3, 4, shape).half() for shape in ((256, 128), (128, 256)))
c = product(256, 256, 128, 128, 128, 64)(a.cuda(), b.cuda())
assert torch.equal(c.cpu().float(), a.float() @ b.float())
print("ok")
