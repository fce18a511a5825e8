// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The custom call "fp8_call" by which XLA runs entry points of compiled libraries
// (fp8.jax registers both). A program of XLA names the entry point, it does not
// hold its address: one that outlives the process, in a cache on disk, meets an
// error here and not a jump to anywhere.

#include "fp8rt/call.h"
#include "xla/ffi/api/ffi.h"

#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace ffi = xla::ffi;

namespace {

struct Entry {
  fp8rt_call_fn function;
  uint64_t workspaceBytes;
  uint32_t version;
};

/// The entry points of this process by name. Entries are added and never removed.
struct Table {
  std::shared_mutex mutex;
  std::unordered_map<std::string, Entry> entries;
};

Table &table() {
  static Table *instance = new Table; // Never destroyed: threads of XLA may outlive main.
  return *instance;
}

/// DLPack's type of XLA's; kDLOpaqueHandle, which no library takes, for any other.
DLDataType dataType(ffi::DataType type) {
  auto make = [](uint8_t code, uint8_t bits) { return DLDataType{code, bits, 1}; };
  switch (type) {
  case ffi::DataType::PRED:
    return make(kDLBool, 8);
  case ffi::DataType::S8:
    return make(kDLInt, 8);
  case ffi::DataType::S16:
    return make(kDLInt, 16);
  case ffi::DataType::S32:
    return make(kDLInt, 32);
  case ffi::DataType::S64:
    return make(kDLInt, 64);
  case ffi::DataType::U8:
    return make(kDLUInt, 8);
  case ffi::DataType::U16:
    return make(kDLUInt, 16);
  case ffi::DataType::U32:
    return make(kDLUInt, 32);
  case ffi::DataType::U64:
    return make(kDLUInt, 64);
  case ffi::DataType::F16:
    return make(kDLFloat, 16);
  case ffi::DataType::F32:
    return make(kDLFloat, 32);
  case ffi::DataType::F64:
    return make(kDLFloat, 64);
  case ffi::DataType::BF16:
    return make(kDLBfloat, 16);
  case ffi::DataType::F8E4M3FN:
    return make(kDLFloat8_e4m3fn, 8);
  case ffi::DataType::F8E5M2:
    return make(kDLFloat8_e5m2, 8);
  case ffi::DataType::F8E8M0FNU:
    return make(kDLFloat8_e8m0fnu, 8);
  default:
    return make(kDLOpaqueHandle, 8);
  }
}

DLTensor describe(ffi::AnyBuffer buffer) {
  ffi::AnyBuffer::Dimensions dimensions = buffer.dimensions();
  DLTensor tensor{};
  tensor.data = buffer.untyped_data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(dimensions.size());
  tensor.dtype = dataType(buffer.element_type());
  tensor.shape = const_cast<int64_t *>(dimensions.begin()); // The call does not change it.
  return tensor;
}

/// The buffers of a call, arguments before results. Each thread keeps the memory for its next call: malloc
/// puts the process's free memory in order for every large piece, which takes longer than all else here.
struct Tensors {
  std::vector<DLTensor> tensors;
  std::vector<DLTensor *> pointers;

  void clear(size_t size) {
    tensors.clear();
    pointers.clear();
    tensors.reserve(size); // The pointers stay valid.
  }

  void add(ffi::AnyBuffer buffer) {
    tensors.push_back(describe(buffer));
    pointers.push_back(&tensors.back());
  }
};

/// Calls an entry point on XLA's buffers. Arguments and results are in the manifest's order; one more
/// result is the workspace, where there is one. XLA may run several calls at the same time.
ffi::Error call(std::string_view name, ffi::RemainingArgs args, ffi::RemainingRets rets) {
  Entry entry;
  {
    std::shared_lock lock(table().mutex);
    auto found = table().entries.find(std::string(name));
    if (found == table().entries.end())
      return ffi::Error(
          ffi::ErrorCode::kFailedPrecondition,
          "the compiled program " + std::string(name) +
              " is not loaded in this process: call the function of fp8.jax again, which compiles it");
    entry = found->second;
  }
  size_t numResults = rets.size() - (entry.workspaceBytes ? 1 : 0);
  thread_local Tensors tensors;
  tensors.clear(args.size() + numResults);
  for (size_t i = 0; i < args.size(); ++i)
    tensors.add(*args.get<ffi::AnyBuffer>(i));
  for (size_t i = 0; i < numResults; ++i)
    tensors.add(**rets.get<ffi::AnyBuffer>(i));

  char error[1024] = "";
  fp8rt_call request{};
  request.version = entry.version;
  request.num_arguments = static_cast<uint32_t>(args.size());
  request.num_results = static_cast<uint32_t>(numResults);
  request.arguments = tensors.pointers.data();
  request.results = tensors.pointers.data() + args.size();
  if (entry.workspaceBytes) {
    request.workspace = (**rets.get<ffi::AnyBuffer>(numResults)).untyped_data();
    request.workspace_bytes = entry.workspaceBytes;
  }
  request.error = error;
  request.error_capacity = sizeof error;
  if (entry.function(&request))
    return ffi::Error(ffi::ErrorCode::kInternal, error);
  return ffi::Error::Success();
}

} // namespace

/// Makes an entry point known as `name`; a second time for the same name is no error. `function` is
/// `fp8_call_<entry>` of a library that stays loaded, `version` the one of fp8rt_call that it takes.
extern "C" void fp8_jax_register(const char *name, void *function, uint64_t workspaceBytes,
                                 uint32_t version) {
  std::unique_lock lock(table().mutex);
  table().entries[name] = {reinterpret_cast<fp8rt_call_fn>(function), workspaceBytes, version};
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    fp8_call, call, ffi::Ffi::Bind().Attr<std::string_view>("entry").RemainingArgs().RemainingRets());
