// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX for tests of the bulk copy engine: pieces of kernels around the copy.

#ifndef FP8EMU_TEST_COPYKERNELS_H
#define FP8EMU_TEST_COPYKERNELS_H

#include "Harness.h"

#include "async/TensorMap.h"

#include <string>

namespace fp8emu::test {

constexpr unsigned kTileBytes = 32768;

/// A tensor map as a kernel's parameter.
struct MapParameter {
  explicit MapParameter(const TensorMap &map) { map.encode(bytes); }
  MapParameter() = default;
  uint8_t bytes[kTensorMapBytes] = {};
};

/// A kernel k(map, out, in, word) of sm_100a for blocks of 128 threads, with `tile` of
/// 32 KiB and two mbarriers at `bar` in shared memory; thread 0 is told by %p0, the
/// block of the cluster by %rank. `tile` holds 0xCC in every byte.
inline std::string copyKernel(const std::string &body) {
  return ".version 8.8\n.target sm_100a\n.address_size 64\n"
         ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 in, .param .u32 "
         "word) "
         "{\n"
         ".shared .align 1024 .b8 tile[32768];\n.shared .align 8 .b64 bar[2];\n"
         ".shared .align 128 .b8 copy[128];\n"
         ".reg .b32 %t, %rank, %word, %c<8>, %r<32>;\n.reg .b64 %out, %in, %map, %rd<32>;\n"
         ".reg .b16 %rs<8>;\n.reg .pred %p<8>;\n"
         "mov.u32 %t, %tid.x;\nsetp.eq.u32 %p0, %t, 0;\nmov.u32 %rank, %cluster_ctarank;\n"
         "ld.param.u64 %out, [out];\nld.param.u64 %in, [in];\nld.param.u32 %word, [word];\n"
         "mov.b64 %map, map;\ncvta.param.u64 %map, %map;\n"
         "mov.u32 %r0, tile;\nshl.b32 %r1, %t, 2;\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r2, %r0, 32768;\n"
         "FILL:\nst.shared.u32 [%r0], 0xCCCCCCCC;\nadd.u32 %r0, %r0, 512;\nsetp.lt.u32 %p1, %r0, %r2;\n"
         "@%p1 bra FILL;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n" +
         body + "\nret;\n}\n";
}

/// Initialises the first mbarrier for one arrival, which happens, and `bytes`.
inline std::string expect(unsigned bytes) {
  return "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n"
         "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " +
         std::to_string(bytes) + ";\nbar.sync 0;\n";
}

/// All threads wait for it.
inline std::string await() {
  return "AWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p7, [bar], 0;\n@!%p7 bra AWAIT;\n";
}

inline std::string clusterBarrier() {
  return "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
}

/// Copies the tile to `out`, one after the other of the cluster's blocks.
inline std::string copyOut() {
  return "mov.u32 %r0, tile;\nshl.b32 %r1, %t, 2;\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r2, %r0, 32768;\n"
         "mad.lo.u32 %r3, %rank, 32768, %r1;\ncvt.u64.u32 %rd0, %r3;\nadd.u64 %rd0, %rd0, %out;\n"
         "OUT:\nld.shared.u32 %r4, [%r0];\nst.global.u32 [%rd0], %r4;\nadd.u32 %r0, %r0, 512;\n"
         "add.u64 %rd0, %rd0, 512;\nsetp.lt.u32 %p1, %r0, %r2;\n@%p1 bra OUT;\n";
}

/// Fills the tile with the first 32 KiB at `in`.
inline std::string copyIn() {
  return "mov.u32 %r0, tile;\nshl.b32 %r1, %t, 2;\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r2, %r0, 32768;\n"
         "cvt.u64.u32 %rd0, %r1;\nadd.u64 %rd0, %rd0, %in;\n"
         "IN:\nld.global.u32 %r4, [%rd0];\nst.shared.u32 [%r0], %r4;\nadd.u32 %r0, %r0, 512;\n"
         "add.u64 %rd0, %rd0, 512;\nsetp.lt.u32 %p1, %r0, %r2;\n@%p1 bra IN;\n"
         "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
}

inline LaunchConfig copyConfig(unsigned blocks = 1, unsigned cluster = 1) {
  LaunchConfig config;
  config.block = {128, 1, 1};
  config.grid = {blocks, 1, 1};
  config.cluster = {cluster, 1, 1};
  return config;
}

} // namespace fp8emu::test

#endif // FP8EMU_TEST_COPYKERNELS_H
