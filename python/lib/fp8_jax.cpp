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

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
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

/// A custom call in a program of XLA, made when XLA loads the program. Its buffers always have the same types
/// and shapes.
struct Instance {
  static ffi::TypeId id;

  /// Greater than 0; no other instance of this process has or had it.
  uint64_t number;
  Entry entry;
};

ffi::TypeId Instance::id = {};

ffi::ErrorOr<std::unique_ptr<Instance>> instantiate(std::string_view name) {
  static std::atomic<uint64_t> last{0};
  std::shared_lock lock(table().mutex);
  auto found = table().entries.find(std::string(name));
  if (found == table().entries.end())
    return ffi::Unexpected(ffi::Error(
        ffi::ErrorCode::kFailedPrecondition,
        "the compiled program " + std::string(name) +
            " is not loaded in this process: call the function of fp8.jax again, which compiles it"));
  return std::make_unique<Instance>(Instance{++last, found->second});
}

/// The buffers of a call, arguments before results, as compiled code takes them. Each thread keeps those of
/// its last call: where the next one is of the same instance, their memory alone is put in. And malloc puts
/// the process's free memory in order for every large piece, which takes longer than all else here.
struct Tensors {
  /// The number of the instance whose buffers are described; 0 for none.
  uint64_t instance = 0;
  std::vector<DLTensor> tensors;
  std::vector<DLTensor *> pointers;
  /// The shapes of all tensors: XLA's are gone after the call.
  std::vector<int64_t> sizes;

  void add(ffi::AnyBuffer buffer) {
    ffi::AnyBuffer::Dimensions dimensions = buffer.dimensions();
    DLTensor tensor{};
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(dimensions.size());
    tensor.dtype = dataType(buffer.element_type());
    tensors.push_back(tensor);
    sizes.insert(sizes.end(), dimensions.begin(), dimensions.end());
  }

  void describe(ffi::RemainingArgs args, ffi::RemainingRets rets, size_t numResults) {
    instance = 0;
    tensors.clear();
    pointers.clear();
    sizes.clear();
    for (size_t i = 0; i < args.size(); ++i)
      add(*args.get<ffi::AnyBuffer>(i));
    for (size_t i = 0; i < numResults; ++i)
      add(**rets.get<ffi::AnyBuffer>(i));
    int64_t *shape = sizes.data();
    for (DLTensor &tensor : tensors) {
      tensor.shape = shape;
      shape += tensor.ndim;
      pointers.push_back(&tensor);
    }
  }

  void setMemory(ffi::RemainingArgs args, ffi::RemainingRets rets, size_t numResults) {
    for (size_t i = 0; i < args.size(); ++i)
      tensors[i].data = args.get<ffi::AnyBuffer>(i)->untyped_data();
    for (size_t i = 0; i < numResults; ++i)
      tensors[args.size() + i].data = (*rets.get<ffi::AnyBuffer>(i))->untyped_data();
  }
};

/// Calls an entry point on XLA's buffers. Arguments and results are in the manifest's order; one more
/// result is the workspace, where there is one. XLA may run several calls at the same time.
ffi::Error call(const Instance *instance, ffi::RemainingArgs args, ffi::RemainingRets rets) {
  const Entry &entry = instance->entry;
  size_t numResults = rets.size() - (entry.workspaceBytes ? 1 : 0);
  thread_local Tensors tensors;
  bool isKnown = tensors.instance == instance->number;
  if (!isKnown)
    tensors.describe(args, rets, numResults);
  tensors.setMemory(args, rets, numResults);

  char error[1024] = "";
  fp8rt_call request{};
  request.version = entry.version;
  request.flags = isKnown ? FP8RT_CALL_IS_CHECKED : 0;
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
  tensors.instance = instance->number;
  return ffi::Error::Success();
}

} // namespace

// Names of C, which Python looks up.
// NOLINTBEGIN(readability-identifier-naming)

/// Makes an entry point known as `name`; a second time for the same name is no error. `function` is
/// `fp8_call_<entry>` of a library that stays loaded, `version` the one of fp8rt_call that it takes.
extern "C" void fp8_jax_register(const char *name, void *function, uint64_t workspaceBytes,
                                 uint32_t version) {
  std::unique_lock lock(table().mutex);
  table().entries[name] = {reinterpret_cast<fp8rt_call_fn>(function), workspaceBytes, version};
}

/// XLA's number for the type of Instance and what it knows of it, which are registered before the custom
/// call.
extern "C" ffi::TypeId *fp8_jax_type_id() { return &Instance::id; }
extern "C" const ffi::TypeInfo *fp8_jax_type_info() {
  static constexpr ffi::TypeInfo kInfo = ffi::MakeTypeInfo<Instance>();
  return &kInfo;
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(fp8_instantiate, instantiate,
                              ffi::Ffi::BindInstantiate().Attr<std::string_view>("entry"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(fp8_call, call,
                              ffi::Ffi::Bind().Ctx<ffi::State<Instance>>().RemainingArgs().RemainingRets());

// NOLINTEND(readability-identifier-naming)
