// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled library written by hand with what sm_90a has beyond device_fixture.cpp: a kernel that takes a
// tensor map, and one that runs in clusters.

#include "fp8rt/call.h"

#include <cstdio>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char *fp8_manifest(void) {
  return R"({"version": 1, "call": 2, "target": "sm_90a", "entries": [
    {"name": "box", "capturable": true,
     "arguments": [{"name": "x", "type": "f32", "shape": [5, 12]}],
     "results": [{"name": "box", "type": "f32", "shape": [4, 8]}, {"name": "ranks", "type": "i32", "shape": [4]}]},
    {"name": "wrong_box", "arguments": [{"name": "x", "type": "f32", "shape": [5, 12]}], "results": []}]})";
}

static const char kPtx[] = R"(.version 8.0
.target sm_90a
.address_size 64

// Copies the box at column 8, row 3 of the map's tensor to out, by one thread.
.visible .entry load_box(.param .u64 out, .param .align 64 .b8 map[128]) {
  .reg .b64 %a<8>;
  .reg .b32 %r<8>;
  .reg .f32 %f<2>;
  .reg .pred %p<2>;
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 bar;
  ld.param.u64 %a0, [out];
  mov.b64 %a1, map;
  cvta.param.u64 %a1, %a1;
  mov.u32 %r0, tile;
  mov.u32 %r1, bar;
  mov.u32 %r2, 8;
  mov.u32 %r3, 3;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%a1, {%r2, %r3}], [%r1];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r1], 0;
  @!%p0 bra wait;
  mov.u32 %r4, 0;
next:
  ld.shared.f32 %f0, [%r0];
  st.global.f32 [%a0], %f0;
  add.u32 %r0, %r0, 4;
  add.u64 %a0, %a0, 4;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 32;
  @%p1 bra next;
  ret;
}

// out[block] = its rank in its cluster
.visible .entry ranks(.param .u64 out) {
  .reg .b64 %a<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %a0, [out];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %cluster_ctarank;
  mul.wide.u32 %a1, %r0, 4;
  add.u64 %a0, %a0, %a1;
  st.global.u32 [%a0], %r1;
  ret;
}
)";

EXPORT const fp8rt_device_code *fp8_device_code(void) {
  static const fp8rt_device_kernel kernels[] = {{"load_box", 1, 0, 1, 0}, {"ranks", 1, 0, 2, 0}};
  static const fp8rt_device_image image = {"sm_90a", 80, 0, kPtx, sizeof(kPtx), nullptr, 0};
  static const fp8rt_device_code code = {FP8RT_DEVICE_VERSION, 1, &image, 2, 0, kernels, nullptr};
  return &code;
}

namespace {

int passOn(fp8rt_call *call, int status) {
  if (status && call->error_capacity)
    std::snprintf(call->error, call->error_capacity, "%s", call->device->error(call->device->context));
  return status;
}

struct alignas(64) TensorMap {
  char bytes[128];
};

/// A map of boxes [4, 8] of the first argument, whose rows are so many bytes apart.
int makeMap(fp8rt_call *call, TensorMap &map, uint64_t pitch) {
  const uint64_t sizes[] = {12, 5}, strides[] = {4, pitch};
  const uint32_t box[] = {8, 4};
  return passOn(call, call->device->tensor_map(call->device->context, &map, FP8RT_MAP_FLOAT32, 2,
                                               call->arguments[0]->data, sizes, strides, box, 0));
}

int launch(fp8rt_call *call, uint32_t kernel, uint64_t blocks, void **parameters) {
  return passOn(call, call->device->launch(call->device->context, kernel, -1, blocks, 1, 1, parameters));
}

} // namespace

EXPORT int fp8_call_box(fp8rt_call *call) {
  TensorMap map;
  void *boxParameters[] = {&call->results[0]->data, &map}, *rankParameters[] = {&call->results[1]->data};
  return makeMap(call, map, 48) || launch(call, 0, 1, boxParameters) || launch(call, 1, 4, rankParameters);
}

/// Rows of 44 bytes: strides must be multiples of 16.
EXPORT int fp8_call_wrong_box(fp8rt_call *call) {
  TensorMap map;
  return makeMap(call, map, 44);
}
