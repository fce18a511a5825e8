// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled library written by hand whose kernels run on a device: what the tests of sessions on devices
// run. Built without DEVICE_CHIP it is the same program compiled for the CPU, to compare with.

#include "fp8rt/call.h"

#include <cstdio>

#define EXPORT extern "C" __attribute__((visibility("default")))

static const char kManifest[] = R"({"version": 1, )"
#ifdef DEVICE_CHIP
                                R"("call": 2, "target": ")" DEVICE_CHIP R"(", )"
#else
                                R"("target": "cpu", )"
#endif
                                R"("entries": [
  {"name": "main", "capturable": true, "workspace_bytes": 24, "workspace_alignment": 256,
   "arguments": [
     {"name": "w", "type": "f32", "shape": [6], "carry": 0, "written": true},
     {"name": "m", "type": "i32", "shape": [4], "carry": 1},
     {"name": "x", "type": "f32", "shape": [6]},
     {"name": "scale", "type": "f32", "shape": [1], "kind": "state", "written": true}],
   "results": [
     {"type": "f32", "shape": [6], "alias": 0},
     {"type": "i32", "shape": [4]},
     {"name": "loss", "type": "f32", "shape": []},
     {"name": "scale", "type": "f32", "shape": [1], "kind": "state", "alias": 3}]},
  {"name": "dynamic", "capturable": true,
   "arguments": [{"name": "n", "type": "i32", "shape": []}],
   "results": [{"name": "ramp", "type": "i32", "shape": [null]}]},
  {"name": "forward", "capturable": true,
   "arguments": [{"name": "x", "type": "f32", "shape": [3]}, {"name": "factor", "type": "f32", "shape": []}],
   "results": [{"name": "saved", "type": "f32", "shape": [3], "kind": "residual"}]},
  {"name": "backward", "capturable": true,
   "arguments": [{"name": "saved", "type": "f32", "shape": [3], "kind": "residual"},
                 {"name": "g", "type": "f32", "shape": []}],
   "results": [{"name": "gx", "type": "f32", "shape": [3]}]},
  {"name": "reading", "capturable": true,
   "arguments": [{"name": "x", "type": "f32", "shape": []}], "results": []},
  {"name": "faulting", "arguments": [{"name": "x", "type": "f32", "shape": [6]}],
   "results": [{"name": "y", "type": "f32", "shape": [6]}]},
  {"name": "refused", "arguments": [], "results": []},
  {"name": "ranks", "capturable": true,
   "arguments": [{"name": "x", "type": "f32", "shape": [3]}, {"name": "factor", "type": "f32", "shape": []}],
   "results": [{"name": "sum", "type": "f32", "shape": [3]}]}],
 "state": {"layout_hash": "abc", "columns": [],
           "tensors": [{"name": "scale", "type": "f32", "shape": [1], "initial": 1.0}]}})";

EXPORT const char *fp8_manifest(void) { return kManifest; }

EXPORT const char *fp8_kernels(void) {
  return R"({"sites": ["fc", "head"], "kernels": [
    {"name": "scale_add", "kind": "elementwise", "sites": [0], "read": 52, "written": 24, "operations": 12},
    {"name": "sum", "kind": "reductions", "sites": [0, 1], "read": 24, "written": 4, "operations": 6},
    {"name": "poke", "kind": "other", "sites": [1], "read": 0, "written": 4, "operations": 0}]})";
}

static int failWith(fp8rt_call *call, const char *reason) {
  if (call->error_capacity)
    std::snprintf(call->error, call->error_capacity, "%s", reason);
  return 1;
}

static void *argument(fp8rt_call *call, int i) {
  return static_cast<char *>(call->arguments[i]->data) + call->arguments[i]->byte_offset;
}
static void *result(fp8rt_call *call, int i) {
  return static_cast<char *>(call->results[i]->data) + call->results[i]->byte_offset;
}

#ifdef DEVICE_CHIP

// Each kernel takes four pointers and the number of elements, and has a thread per element. In its
// registers a0 points to its element of p0, a1 to p1 …, a4 is the offset of its element, r1 its number.
#define BEGIN(NAME)                                                                                          \
  "\n.visible .entry " NAME R"((.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3,
      .param .u32 n) {
    .reg .b64 %a<8>;
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .pred %p<3>;
    ld.param.u64 %a0, [p0];
    ld.param.u64 %a1, [p1];
    ld.param.u64 %a2, [p2];
    ld.param.u64 %a3, [p3];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p0, %r1, %r0;
    @%p0 ret;
    mul.wide.u32 %a4, %r1, 4;
    add.u64 %a0, %a0, %a4;
)"

static const char kPtx[] = ".version 8.0\n.target " DEVICE_CHIP "\n.address_size 64\n"
                           ".global .align 4 .u32 one = 1;\n"
    // p0[i] = p1[i] + p2[i] * p3[0]
    BEGIN("scale_add") R"(
    add.u64 %a1, %a1, %a4;
    add.u64 %a2, %a2, %a4;
    ld.global.f32 %f0, [%a1];
    ld.global.f32 %f1, [%a2];
    ld.global.f32 %f2, [%a3];
    mul.rn.f32 %f1, %f1, %f2;
    add.rn.f32 %f0, %f0, %f1;
    st.global.f32 [%a0], %f0;
    ret;
  })"
    // p0[i] = p1[i] * p2[0]
    BEGIN("scale_by") R"(
    add.u64 %a1, %a1, %a4;
    ld.global.f32 %f0, [%a1];
    ld.global.f32 %f1, [%a2];
    mul.rn.f32 %f0, %f0, %f1;
    st.global.f32 [%a0], %f0;
    ret;
  })"
    // p0[i] = p1[i] + p2[0], integers
    BEGIN("add_one") R"(
    add.u64 %a1, %a1, %a4;
    ld.global.u32 %r2, [%a1];
    ld.global.u32 %r3, [%a2];
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%a0], %r2;
    ret;
  })"
    // p0[0] = p1[0] + … + p1[5], by one thread
    BEGIN("sum") R"(
    mov.f32 %f0, 0f00000000;
    mov.u32 %r2, 0;
  again:
    ld.global.f32 %f1, [%a1];
    add.rn.f32 %f0, %f0, %f1;
    add.u64 %a1, %a1, 4;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 6;
    @%p1 bra again;
    st.global.f32 [%a0], %f0;
    ret;
  })"
    // p0[i] /= 2
    BEGIN("halve") R"(
    ld.global.f32 %f0, [%a0];
    mul.rn.f32 %f0, %f0, 0f3F000000;
    st.global.f32 [%a0], %f0;
    ret;
  })"
    // p0[i] = p1[i] + i, integers
    BEGIN("ramp") R"(
    add.u64 %a1, %a1, %a4;
    ld.global.u32 %r2, [%a1];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [%a0], %r2;
    ret;
  })"
    // Stores to an address that is nobody's.
    BEGIN("poke") R"(
    mov.u64 %a0, 64;
    st.global.u32 [%a0], %r1;
    ret;
  })";

// Machine code that no device loads, so that PTX is used.
static const char kNoCubin[] = "\177ELF";

EXPORT const fp8rt_device_code *fp8_device_code(void) {
  // halve has no use for its shared memory: launches must ask for it all the same.
  static const fp8rt_device_kernel kernels[] = {
      {"scale_add", 32, 0, 1, 0}, {"scale_by", 32, 0, 1, 0}, {"add_one", 32, 0, 1, 0}, {"sum", 32, 0, 1, 0},
      {"halve", 32, 65536, 1, 0}, {"ramp", 32, 0, 1, 0},     {"poke", 32, 0, 1, 0}};
  static const fp8rt_device_image image = {DEVICE_CHIP, DEVICE_PTX_VERSION, 0, kPtx, sizeof(kPtx),
                                           kNoCubin,    sizeof(kNoCubin)};
  static const char *const symbols[] = {"one"};
  static const fp8rt_device_code code = {FP8RT_DEVICE_VERSION, 1, &image, 7, 1, kernels, symbols};
  return &code;
}

namespace {

enum Kernel : uint32_t { ScaleAdd, ScaleBy, AddOne, Sum, Halve, Ramp, Poke };
/// Positions in the list of fp8_kernels.
enum Line : int32_t { NoLine = -1, ScaleAddLine, SumLine, PokeLine };

/// Passes on the reason of a failure.
int passOn(fp8rt_call *call, int status) {
  return status ? failWith(call, call->device->error(call->device->context)) : 0;
}

int launch(fp8rt_call *call, Kernel kernel, Line line, uint32_t n, void *a, void *b = nullptr,
           void *c = nullptr, void *d = nullptr) {
  void *parameters[] = {&a, &b, &c, &d, &n};
  return passOn(call, call->device->launch(call->device->context, kernel, line, n != 0, 1, 1, parameters));
}

int check(fp8rt_call *call) {
  if (call->version != 2 || !call->device || call->device->version != FP8RT_DEVICE_VERSION)
    return failWith(call, "the call has no device");
  for (int i = 0; i < int(call->num_arguments); ++i)
    if (call->arguments[i]->device.device_type != kDLCUDA ||
        reinterpret_cast<uintptr_t>(argument(call, i)) % 256)
      return failWith(call, "an argument is not on the device");
  return 0;
}

} // namespace

EXPORT int fp8_call_main(fp8rt_call *call) {
  const fp8rt_device *device = call->device;
  if (check(call))
    return 1;
  if (call->workspace_bytes != 24 || reinterpret_cast<uintptr_t>(call->workspace) % 256)
    return failWith(call, "the workspace does not fit the manifest");
  void *one = nullptr;
  return launch(call, ScaleAdd, ScaleAddLine, 6, call->workspace, argument(call, 0), argument(call, 2),
                argument(call, 3)) ||
         passOn(call, device->copy(device->context, argument(call, 0), call->workspace, 24)) ||
         passOn(call, device->symbol(device->context, 0, &one)) ||
         launch(call, AddOne, NoLine, 4, result(call, 1), argument(call, 1), one) ||
         launch(call, Sum, SumLine, 1, result(call, 2), argument(call, 0)) ||
         launch(call, Halve, NoLine, 1, argument(call, 3));
}

EXPORT int fp8_call_dynamic(fp8rt_call *call) {
  const fp8rt_device *device = call->device;
  int32_t n = 0;
  if (check(call) || passOn(call, device->read(device->context, &n, argument(call, 0), 4)))
    return 1;
  if (n < 0)
    return failWith(call, "n is negative");
  int64_t shape[1] = {n};
  if (call->allocate(call->allocate_context, 0, shape, 1, call->results[0]))
    return failWith(call, "no memory for result 0");
  void *zeros = nullptr;
  uint64_t bytes = 4 * uint64_t(n);
  return passOn(call, device->allocate(device->context, bytes, &zeros)) ||
         passOn(call, device->fill(device->context, zeros, 0, bytes)) ||
         launch(call, Ramp, NoLine, uint32_t(n), result(call, 0), zeros) ||
         passOn(call, device->release(device->context, zeros));
}

EXPORT int fp8_call_forward(fp8rt_call *call) {
  return check(call) ||
         launch(call, ScaleBy, NoLine, 3, result(call, 0), argument(call, 0), argument(call, 1));
}

EXPORT int fp8_call_backward(fp8rt_call *call) {
  return check(call) ||
         launch(call, ScaleBy, NoLine, 3, result(call, 0), argument(call, 0), argument(call, 1));
}

/// Its manifest is wrong: its work cannot be captured.
EXPORT int fp8_call_reading(fp8rt_call *call) {
  float x = 0;
  return check(call) || passOn(call, call->device->read(call->device->context, &x, argument(call, 0), 4));
}

/// The second of its kernels fails, if x[0] is not 0.
EXPORT int fp8_call_faulting(fp8rt_call *call) {
  float x = 0;
  return check(call) ||
         launch(call, ScaleBy, NoLine, 6, result(call, 0), argument(call, 0), argument(call, 0)) ||
         passOn(call, call->device->read(call->device->context, &x, argument(call, 0), 4)) ||
         launch(call, Sum, SumLine, 1, result(call, 0), argument(call, 0)) ||
         launch(call, Poke, PokeLine, x != 0, nullptr);
}

/// The sum over the ranks of x times the factor, in place.
EXPORT int fp8_call_ranks(fp8rt_call *call) {
  static const int64_t grid[] = {0};
  static const fp8rt_group everyone = {grid, 1, 1};
  const fp8rt_communicator *ranks = call->communicator;
  if (check(call) || launch(call, ScaleBy, NoLine, 3, result(call, 0), argument(call, 0), argument(call, 1)))
    return 1;
  fp8rt_collective sum = {FP8RT_ALL_REDUCE, FP8RT_SUM,       FP8RT_F32, 0,    &everyone,
                          result(call, 0),  result(call, 0), 3,         "sum"};
  uint64_t ticket = 0;
  if (ranks && (ranks->start(ranks->context, &sum, call->stream, &ticket) ||
                ranks->wait(ranks->context, ticket, call->stream)))
    return failWith(call, ranks->error(ranks->context));
  return 0;
}

EXPORT int fp8_call_refused(fp8rt_call *call) {
  return passOn(call, call->device->launch(call->device->context, Sum, SumLine, 1, 65536, 1, nullptr));
}

#else // DEVICE_CHIP

EXPORT int fp8_call_main(fp8rt_call *call) {
  auto *w = static_cast<float *>(argument(call, 0)), *x = static_cast<float *>(argument(call, 2));
  auto *scale = static_cast<float *>(argument(call, 3));
  for (int i = 0; i < 4; ++i)
    static_cast<int32_t *>(result(call, 1))[i] = static_cast<int32_t *>(argument(call, 1))[i] + 1;
  float sum = 0;
  for (int i = 0; i < 6; ++i) {
    volatile float scaled = x[i] * scale[0]; // rounded before it is added
    w[i] += scaled;
    sum += w[i];
  }
  *static_cast<float *>(result(call, 2)) = sum;
  scale[0] *= 0.5f;
  return 0;
}

#define ON_DEVICES_ONLY(ENTRY)                                                                               \
  EXPORT int fp8_call_##ENTRY(fp8rt_call *call) { return failWith(call, "it runs on devices only"); }
ON_DEVICES_ONLY(dynamic)
ON_DEVICES_ONLY(forward)
ON_DEVICES_ONLY(backward)
ON_DEVICES_ONLY(reading)
ON_DEVICES_ONLY(faulting)
ON_DEVICES_ONLY(refused)
ON_DEVICES_ONLY(ranks)

#endif // DEVICE_CHIP
