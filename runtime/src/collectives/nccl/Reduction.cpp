// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of the kernels, and their launches.

#include "Reduction.h"
#include "../../cuda/DeviceMemory.h"

#include "fp8rt/communicator.h"

#include <algorithm>

using namespace fp8rt;
using namespace fp8rt::cuda;
using namespace fp8rt::collectives::nccl;

namespace {

/// A type in PTX: its elements are loaded into the register `in`, and summed in registers of type `sum`.
struct Type {
  const char *name, *sum, *acc, *next;
  uint32_t log;      // of its bytes
  const char *load;  // %REG from [%a6]
  const char *store; // %acc to [%a5]
};

/// In these texts REG is the register: the sum so far or the next element.
constexpr Type kTypes[] = {
    {"byte", nullptr, nullptr, nullptr, 0, nullptr, nullptr},
    {"i8", "s32", "%r6", "%r7", 0, "ld.global.s8 REG, [%a6];", "st.global.u8 [%a5], REG;"},
    {"i32", "s32", "%r6", "%r7", 2, "ld.global.s32 REG, [%a6];", "st.global.s32 [%a5], REG;"},
    {"i64", "s64", "%l0", "%l1", 3, "ld.global.s64 REG, [%a6];", "st.global.s64 [%a5], REG;"},
    {"f16", "f32", "%f0", "%f1", 1, "ld.global.b16 %h0, [%a6]; cvt.f32.f16 REG, %h0;",
     "cvt.rn.f16.f32 %h0, REG; st.global.b16 [%a5], %h0;"},
    {"bf16", "f32", "%f0", "%f1", 1, "ld.global.u16 %r8, [%a6]; shl.b32 %r8, %r8, 16; mov.b32 REG, %r8;",
     "cvt.rn.bf16.f32 %h0, REG; st.global.b16 [%a5], %h0;"},
    {"f32", "f32", "%f0", "%f1", 2, "ld.global.f32 REG, [%a6];", "st.global.f32 [%a5], REG;"},
    {"f64", "f64", "%d0", "%d1", 3, "ld.global.f64 REG, [%a6];", "st.global.f64 [%a5], REG;"},
};
constexpr const char *kReductions[] = {"sum", "max", "min", "mean", "product"};

constexpr const char *kHead = R"(
.visible .entry NAME(.param .u64 sources, .param .u64 target, .param .u64 count, .param .u32 ranks,
    .param .f64 factor) {
  .reg .b64 %a<8>;
  .reg .b32 %r<9>;
  .reg .b16 %h<1>;
  .reg .b64 %l<2>;
  .reg .f32 %f<3>;
  .reg .f64 %d<3>;
  .reg .pred %p<4>;
  ld.param.u64 %a0, [sources];
  ld.param.u64 %a1, [target];
  ld.param.u64 %a3, [count];
  ld.param.u32 %r5, [ranks];
  ld.param.f64 %d2, [factor];
  cvt.rn.f32.f64 %f2, %d2;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  mul.wide.u32 %a2, %r0, %r1;
  cvt.u64.u32 %a5, %r2;
  add.u64 %a2, %a2, %a5;
  mul.wide.u32 %a4, %r3, %r1;
  shl.b64 %a7, %a3, LOG;
element:
  setp.ge.u64 %p0, %a2, %a3;
  @%p0 ret;
  shl.b64 %a5, %a2, LOG;
  add.u64 %a6, %a0, %a5;
  add.u64 %a5, %a1, %a5;
  LOADACC
  mov.u32 %r4, 1;
rank:
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra store;
  add.u64 %a6, %a6, %a7;
  LOADNEXT
  COMBINE
  add.u32 %r4, %r4, 1;
  bra rank;
store:
  FINISH
  STORE
  add.u64 %a2, %a2, %a4;
  bra element;
}
)";

/// Counts up, and says first at which collective.
constexpr const char *kMarks = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry arrive(.param .u64 record, .param .u64 description) {
  .reg .b64 %a<3>;
  ld.param.u64 %a0, [record];
  ld.param.u64 %a1, [description];
  st.volatile.global.u64 [%a0+16], %a1;
  membar.sys;
  ld.volatile.global.u64 %a2, [%a0];
  add.u64 %a2, %a2, 1;
  st.volatile.global.u64 [%a0], %a2;
  ret;
}
.visible .entry complete(.param .u64 record) {
  .reg .b64 %a<3>;
  ld.param.u64 %a0, [record];
  ld.volatile.global.u64 %a2, [%a0+8];
  add.u64 %a2, %a2, 1;
  st.volatile.global.u64 [%a0+8], %a2;
  ret;
}
)";

std::string replaced(std::string text, const std::string &what, const std::string &with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

/// Returns the instructions that combine ACC with NEXT. Of floats, the larger and the smaller are chosen as
/// on the host (Reduce.cpp): NaN wins, and of equal ones the first stays.
std::string combining(const Type &type, uint32_t reduction) {
  bool isFloat = *type.sum == 'f';
  if (reduction == FP8RT_SUM || reduction == FP8RT_MEAN)
    return isFloat ? "add.rn.SUM ACC, ACC, NEXT;" : "add.SUM ACC, ACC, NEXT;";
  if (reduction == FP8RT_PRODUCT)
    return isFloat ? "mul.rn.SUM ACC, ACC, NEXT;" : "mul.lo.SUM ACC, ACC, NEXT;";
  std::string compare = reduction == FP8RT_MAX ? "gt" : "lt";
  std::string text = "setp." + compare + ".SUM %p2, NEXT, ACC;";
  if (isFloat)
    text += " setp.nan.SUM %p3, NEXT, NEXT; or.pred %p2, %p2, %p3;";
  return text + " selp.SELECTED ACC, NEXT, ACC, %p2;";
}

std::string nameOf(uint32_t type, uint32_t reduction) {
  return std::string(kReductions[reduction]) + "_" + kTypes[type].name;
}

bool isKernel(uint32_t type, uint32_t reduction) {
  return type != FP8RT_BYTE && (reduction != FP8RT_MEAN || *kTypes[type].sum == 'f');
}

std::string textOf(uint32_t number, uint32_t reduction) {
  const Type &type = kTypes[number];
  std::string finish;
  if (reduction == FP8RT_MEAN)
    finish =
        std::string("mul.rn.SUM ACC, ACC, ") + (*type.acc == '%' && type.acc[1] == 'd' ? "%d2;" : "%f2;");
  std::string text = replaced(kHead, "COMBINE", combining(type, reduction));
  text = replaced(text, "FINISH", finish);
  text = replaced(text, "LOADACC", replaced(type.load, "REG", type.acc));
  text = replaced(text, "LOADNEXT", replaced(type.load, "REG", type.next));
  text = replaced(text, "STORE", replaced(type.store, "REG", type.acc));
  text = replaced(text, "SELECTED", *type.sum == 's' ? std::string("b") + (type.sum + 1) : type.sum);
  text = replaced(replaced(text, "ACC", type.acc), "NEXT", type.next);
  text = replaced(text, "LOG", std::to_string(type.log));
  return replaced(replaced(text, "SUM", type.sum), "NAME", nameOf(number, reduction));
}

constexpr uint32_t kThreads = 256;
/// Blocks beyond these find no place on a GPU at once.
constexpr uint64_t kMaxBlocks = 2048;

} // namespace

std::string collectives::nccl::textOfKernels() {
  std::string text = kMarks;
  for (uint32_t type = 0; type <= FP8RT_F64; ++type)
    for (uint32_t reduction = 0; reduction <= FP8RT_PRODUCT; ++reduction)
      if (isKernel(type, reduction))
        text += textOf(type, reduction);
  return text;
}

Kernels::Kernels(const Device &device) : device(device) {
  const Driver &driver = device.driver();
  std::string text = textOfKernels();
  driver.check(driver.moduleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr),
               "the kernels of collectives cannot be loaded on " + device.name());
  try {
    arrive = find("arrive");
    complete = find("complete");
    for (uint32_t type = 0; type <= FP8RT_F64; ++type)
      for (uint32_t reduction = 0; reduction <= FP8RT_PRODUCT; ++reduction)
        if (isKernel(type, reduction))
          reductions[type][reduction] = find(nameOf(type, reduction));
    constexpr unsigned kMapped = 2; // CU_MEMHOSTALLOC_DEVICEMAP
    driver.check(driver.memHostAlloc(&record, sizeof(Marks), kMapped),
                 "there is no memory of the host for " + device.name());
    *static_cast<Marks *>(record) = {};
    driver.check(driver.memHostGetDevicePointer(&recordOnDevice, record, 0),
                 device.name() + " does not reach the host's memory");
  } catch (...) {
    if (record)
      driver.memFreeHost(record);
    driver.moduleUnload(module);
    throw;
  }
}

Kernels::~Kernels() {
  device.driver().memFreeHost(record);
  device.driver().moduleUnload(module);
}

CUfunction Kernels::find(const std::string &name) const {
  CUfunction function = nullptr;
  device.driver().check(device.driver().moduleGetFunction(&function, module, name.c_str()),
                        "there is no kernel " + name);
  return function;
}

void Kernels::launch(CUfunction function, uint64_t blocks, uint32_t threads, void **parameters,
                     CUstream stream) const {
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(blocks);
  config.blockDimX = threads;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  device.driver().check(device.driver().launchKernelEx(&config, function, parameters, nullptr),
                        "a kernel of a collective cannot be launched");
}

void Kernels::reduce(uint32_t type, uint32_t reduction, const void *sources, void *target, uint64_t count,
                     uint32_t ranks, CUstream stream) const {
  // The factor is rounded as the sum is.
  double factor = type == FP8RT_F64 ? 1.0 / ranks : 1.0f / static_cast<float>(ranks);
  void *parameters[] = {&sources, &target, &count, &ranks, &factor};
  launch(reductions[type][reduction], std::min(kMaxBlocks, (count + kThreads - 1) / kThreads), kThreads,
         parameters, stream);
}

void Kernels::markArrival(uint64_t description, CUstream stream) const {
  CUdeviceptr address = recordOnDevice;
  void *parameters[] = {&address, &description};
  launch(arrive, 1, 1, parameters, stream);
}

void Kernels::markCompletion(CUstream stream) const {
  CUdeviceptr address = recordOnDevice;
  void *parameters[] = {&address};
  launch(complete, 1, 1, parameters, stream);
}

/// The counts are read first: the data that belongs to them is written before.
Marks Kernels::marks() const {
  const auto *now = static_cast<const Marks *>(record);
  Marks marks;
  marks.completed = __atomic_load_n(&now->completed, __ATOMIC_ACQUIRE);
  marks.arrived = __atomic_load_n(&now->arrived, __ATOMIC_ACQUIRE);
  marks.at = __atomic_load_n(&now->at, __ATOMIC_ACQUIRE);
  return marks;
}
