// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TMA, mbarrier and wgmma by inline assembly, with scopes and labels that are
// inlined more than once.

#include <cstdint>

__device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, 0x989680;\n"
               "@done bra.uni ready;\n"
               "bra.uni again;\n"
               "ready:\n"
               "}" ::"r"(barrier), "r"(parity)
               : "memory");
}

__global__ void __launch_bounds__(128) multiply(const __grid_constant__ uint4 map[8], uint64_t a, uint64_t b,
                                                float *out) {
  __shared__ alignas(1024) char tile[1024];
  __shared__ uint64_t barrier;
  auto bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  auto dst = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(dst),
                 "l"(map), "r"(0), "r"(-8), "r"(bar), "h"(uint16_t(1)), "l"(uint64_t(0x14F0000000000000))
                 : "memory");
  }
  __syncthreads();
  wait(bar, 0);
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0, %1, %2, %3}, %4, %5, p, 1, -1;\n}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  wait(bar, 1);
  for (int i = 0; i < 4; ++i)
    out[4 * threadIdx.x + i] = d[i];
}
