// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The custom call "fp8_call" by which XLA runs entry points of compiled libraries
// (fp8.jax registers both). A program of XLA names the entry point, it does not
// hold its address: one that outlives the process, in a cache on disk, meets an
// error here and not a jump to anywhere.

#include "Entries.h"
#include "Workspace.h"
#include "xla_ffi.h"

#include <atomic>
#include <optional>
#include <string_view>
#include <vector>

using fp8_jax::Entry;
using fp8_jax::table;

namespace {

/// DLPack's type of XLA's; kDLOpaqueHandle, which no library takes, for any other.
DLDataType dataType(xla_ffi::ElementType type) {
  auto make = [](uint8_t code, uint8_t bits) { return DLDataType{code, bits, 1}; };
  switch (type) {
  case xla_ffi::ElementType::PRED:
    return make(kDLBool, 8);
  case xla_ffi::ElementType::S8:
    return make(kDLInt, 8);
  case xla_ffi::ElementType::S16:
    return make(kDLInt, 16);
  case xla_ffi::ElementType::S32:
    return make(kDLInt, 32);
  case xla_ffi::ElementType::S64:
    return make(kDLInt, 64);
  case xla_ffi::ElementType::U8:
    return make(kDLUInt, 8);
  case xla_ffi::ElementType::U16:
    return make(kDLUInt, 16);
  case xla_ffi::ElementType::U32:
    return make(kDLUInt, 32);
  case xla_ffi::ElementType::U64:
    return make(kDLUInt, 64);
  case xla_ffi::ElementType::F16:
    return make(kDLFloat, 16);
  case xla_ffi::ElementType::F32:
    return make(kDLFloat, 32);
  case xla_ffi::ElementType::F64:
    return make(kDLFloat, 64);
  case xla_ffi::ElementType::BF16:
    return make(kDLBfloat, 16);
  case xla_ffi::ElementType::F8E4M3FN:
    return make(kDLFloat8_e4m3fn, 8);
  case xla_ffi::ElementType::F8E5M2:
    return make(kDLFloat8_e5m2, 8);
  case xla_ffi::ElementType::F8E8M0FNU:
    return make(kDLFloat8_e8m0fnu, 8);
  default:
    return make(kDLOpaqueHandle, 8);
  }
}

/// A custom call in a program of XLA, made when XLA loads the program. Its buffers always have the same types
/// and shapes.
struct Instance {
  static xla_ffi::TypeId id;

  /// Greater than 0; no other instance of this process has or had it.
  uint64_t number;
  /// Among those of its entry point: the same in all processes of one program.
  uint64_t numberOfEntry;
  Entry entry;
  std::optional<fp8_jax::WorkspaceUser> user{};
};

xla_ffi::TypeId Instance::id = {};

xla_ffi::Error *makeError(const xla_ffi::CallFrame &frame, xla_ffi::ErrorCode code,
                          const std::string &message) {
  xla_ffi::CreateErrorArgs args{sizeof args, nullptr, message.c_str(), code};
  return frame.api->createError(&args);
}

/// An attribute that is a string; empty if there is none of this name.
std::string stringAttribute(const xla_ffi::Attributes &attributes, std::string_view name) {
  for (int64_t i = 0; i < attributes.size; ++i) {
    const xla_ffi::ByteSpan &known = *attributes.names[i];
    if (std::string_view(known.data, known.size) != name || attributes.types[i] != xla_ffi::kString)
      continue;
    const auto &value = *static_cast<const xla_ffi::ByteSpan *>(attributes.values[i]);
    return std::string(value.data, value.size);
  }
  return {};
}

xla_ffi::Error *instantiate(const xla_ffi::CallFrame &frame) {
  static std::atomic<uint64_t> last{0};
  std::string name = stringAttribute(frame.attributes, "entry");
  std::unique_lock lock(table().mutex);
  auto found = table().entries.find(name);
  if (found == table().entries.end())
    return makeError(
        frame, xla_ffi::ErrorCode::FailedPrecondition,
        "the compiled program " + name +
            " is not loaded in this process: call the function of fp8.jax again, which compiles it");
  xla_ffi::StateArgs args{};
  args.structSize = sizeof args;
  args.context = frame.context;
  args.stage = xla_ffi::Stage::Instantiate;
  args.type = &Instance::id;
  uint64_t numberOfEntry = ++found->second.instances;
  auto *instance = new Instance{++last, numberOfEntry, found->second};
  if (!instance->entry.onDevice)
    instance->user.emplace(instance->entry.workspaceBytes);
  args.state = instance; // XLA destroys it.
  return frame.api->setState(&args);
}

const xla_ffi::Buffer &buffer(const xla_ffi::Buffers &buffers, size_t number) {
  return *static_cast<const xla_ffi::Buffer *>(buffers.values[number]);
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

  void add(const xla_ffi::Buffer &buffer) {
    DLTensor tensor{};
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(buffer.rank);
    tensor.dtype = dataType(buffer.type);
    tensors.push_back(tensor);
    sizes.insert(sizes.end(), buffer.dimensions, buffer.dimensions + buffer.rank);
  }

  void describe(const xla_ffi::Buffers &args, const xla_ffi::Buffers &rets, size_t numResults) {
    instance = 0;
    tensors.clear();
    pointers.clear();
    sizes.clear();
    for (int64_t i = 0; i < args.size; ++i)
      add(buffer(args, i));
    for (size_t i = 0; i < numResults; ++i)
      add(buffer(rets, i));
    int64_t *shape = sizes.data();
    for (DLTensor &tensor : tensors) {
      tensor.shape = shape;
      shape += tensor.ndim;
      pointers.push_back(&tensor);
    }
  }

  void setMemory(const xla_ffi::Buffers &args, const xla_ffi::Buffers &rets, size_t numResults) {
    for (int64_t i = 0; i < args.size; ++i)
      tensors[i].data = buffer(args, i).data;
    for (size_t i = 0; i < numResults; ++i)
      tensors[args.size + i].data = buffer(rets, i).data;
  }
};

/// The memory of XLA's buffers, in their order.
std::vector<void *> addresses(const xla_ffi::Buffers &buffers) {
  std::vector<void *> all;
  for (int64_t i = 0; i < buffers.size; ++i)
    all.push_back(buffer(buffers, i).data);
  return all;
}

/// Gives a stage the instance of its call.
xla_ffi::Error *find(const xla_ffi::CallFrame &frame, const Instance *&instance) {
  xla_ffi::StateArgs state{};
  state.structSize = sizeof state;
  state.context = frame.context;
  state.stage = xla_ffi::Stage::Instantiate;
  state.type = &Instance::id;
  xla_ffi::Error *failure = frame.api->getState(&state);
  instance = failure ? nullptr : static_cast<const Instance *>(state.state);
  return failure;
}

/// Null for an empty message.
xla_ffi::Error *internalError(const xla_ffi::CallFrame &frame, const std::string &message) {
  return message.empty() ? nullptr : makeError(frame, xla_ffi::ErrorCode::Internal, message);
}

/// The number of the device that a call runs on.
xla_ffi::Error *findOrdinal(const xla_ffi::CallFrame &frame, int32_t &ordinal) {
  xla_ffi::DeviceOrdinalArgs args{sizeof args, nullptr, frame.context, 0};
  xla_ffi::Error *failure = frame.api->getDeviceOrdinal(&args);
  ordinal = args.ordinal;
  return failure;
}

/// Finds the device of a call, and its rank; null for a program of one rank.
xla_ffi::Error *findRank(const xla_ffi::CallFrame &frame, const Entry &entry, int32_t &ordinal,
                         fp8_jax::Rank *&rank) {
  rank = nullptr;
  if (xla_ffi::Error *failure = findOrdinal(frame, ordinal); failure || !entry.ranks)
    return failure;
  auto found = entry.ranks->find(ordinal);
  if (found == entry.ranks->end())
    return makeError(
        frame, xla_ffi::ErrorCode::FailedPrecondition,
        "device " + std::to_string(ordinal) +
            " is none of those that the step was compiled for: call it again, which compiles it");
  rank = &found->second;
  return nullptr;
}

/// Runs `work`, which returns the error or nothing, as one of the calls of a rank, or where that is null as
/// it is.
template <typename Work>
std::string inTurn(fp8_jax::Rank *rank, const Instance &instance, Work work) {
  if (!rank)
    return work();
  std::lock_guard<std::mutex> turn(rank->mutex());
  std::string error = rank->compare(instance.numberOfEntry);
  if (error.empty())
    error = work();
  if (!error.empty())
    rank->fail(error);
  return error;
}

/// Calls an entry point for GPUs on buffers of the CPU.
xla_ffi::Error *callOnEmulator(const xla_ffi::CallFrame &frame, const Instance &instance) {
  const Entry &entry = instance.entry;
  if (!entry.onDevice->runsOnEmulator())
    return makeError(
        frame, xla_ffi::ErrorCode::InvalidArgument,
        "the function is compiled for a GPU, and its arguments lie on the CPU: put them on the GPU "
        "with jax.device_put, or pass device=\"emulator\"");
  int32_t ordinal = 0;
  fp8_jax::Rank *rank = nullptr;
  if (entry.ranks)
    if (xla_ffi::Error *failure = findRank(frame, entry, ordinal, rank))
      return failure;
  return internalError(frame, inTurn(rank, instance, [&] {
                         return entry.onDevice->run(ordinal, rank, addresses(frame.arguments).data(),
                                                    addresses(frame.results).data());
                       }));
}

/// On a GPU, before calls: loads the kernels there, which no graph can capture.
xla_ffi::Error *openGPU(const xla_ffi::CallFrame &frame) {
  const Instance *instance;
  int32_t ordinal;
  if (xla_ffi::Error *failure = find(frame, instance))
    return failure;
  if (!instance->entry.onDevice || instance->entry.onDevice->runsOnEmulator())
    return makeError(
        frame, xla_ffi::ErrorCode::InvalidArgument,
        std::string("the function is compiled for ") +
            (instance->entry.onDevice ? "the emulator" : "the CPU") +
            ", and its arguments lie on a GPU: leave device= and target= out, or put the arguments on "
            "the CPU");
  fp8_jax::Rank *rank;
  if (xla_ffi::Error *failure = findRank(frame, instance->entry, ordinal, rank))
    return failure;
  return internalError(frame, instance->entry.onDevice->open(ordinal, rank));
}

/// Enqueues an entry point's work on XLA's stream of a GPU, with its workspace in memory of XLA: one more
/// result, where there is one.
xla_ffi::Error *callOnGPU(const xla_ffi::CallFrame &frame) {
  const Instance *instance;
  int32_t ordinal;
  xla_ffi::StreamArgs stream{sizeof stream, nullptr, frame.context, nullptr};
  if (xla_ffi::Error *failure = find(frame, instance))
    return failure;
  if (xla_ffi::Error *failure = findOrdinal(frame, ordinal))
    return failure;
  if (xla_ffi::Error *failure = frame.api->getStream(&stream))
    return failure;
  std::vector<void *> arguments = addresses(frame.arguments), results = addresses(frame.results);
  void *workspace = instance->entry.workspaceBytes ? results.back() : nullptr;
  return internalError(frame, instance->entry.onDevice->enqueue(ordinal, arguments.data(), results.data(),
                                                                workspace, stream.stream));
}

/// Calls an entry point on XLA's buffers. Arguments and results are in the manifest's order. XLA may run
/// several calls at the same time.
xla_ffi::Error *call(const xla_ffi::CallFrame &frame) {
  const Instance *found;
  if (xla_ffi::Error *failure = find(frame, found))
    return failure;
  const Instance &instance = *found;
  const Entry &entry = instance.entry;
  if (entry.onDevice)
    return callOnEmulator(frame, instance);
  int32_t ordinal;
  fp8_jax::Rank *rank = nullptr;
  if (entry.ranks)
    if (xla_ffi::Error *failure = findRank(frame, entry, ordinal, rank))
      return failure;
  const xla_ffi::Buffers &args = frame.arguments, &rets = frame.results;
  size_t numResults = rets.size;
  thread_local Tensors tensors;
  bool isKnown = tensors.instance == instance.number;
  if (!isKnown)
    tensors.describe(args, rets, numResults);
  tensors.setMemory(args, rets, numResults);

  char error[1024] = "";
  fp8rt_call request{};
  request.version = entry.version;
  request.flags = isKnown ? FP8RT_CALL_IS_CHECKED : 0;
  request.num_arguments = static_cast<uint32_t>(args.size);
  request.num_results = static_cast<uint32_t>(numResults);
  request.arguments = tensors.pointers.data();
  request.results = tensors.pointers.data() + args.size;
  request.error = error;
  request.error_capacity = sizeof error;
  request.communicator = rank ? rank->communicator() : nullptr;
  auto code = xla_ffi::ErrorCode::Internal;
  std::string failure = inTurn(rank, instance, [&]() -> std::string {
    fp8_jax::Workspace workspace(entry.workspaceBytes);
    if (entry.workspaceBytes && !workspace.data()) {
      code = xla_ffi::ErrorCode::ResourceExhausted;
      return "no memory for the workspace of " + std::to_string(entry.workspaceBytes) + " bytes";
    }
    request.workspace = workspace.data();
    request.workspace_bytes = entry.workspaceBytes;
    // Calls that are measured take turns, and those of the ranks of one program wait for each other.
    std::optional<fp8_jax::Measured> measured;
    if (!entry.ranks || entry.ranks->size() == 1)
      measured.emplace(*entry.profiling, request);
    return entry.function(&request) ? error : "";
  });
  if (!failure.empty())
    return makeError(frame, code, failure);
  tensors.instance = instance.number;
  return nullptr;
}

/// Answers XLA's question what the handler is; false if XLA did not ask.
bool describeHandler(const xla_ffi::CallFrame &frame, xla_ffi::TypeId stateType, uint32_t traits = 0) {
  if (!frame.extension || frame.extension->type != xla_ffi::kMetadataExtension)
    return false;
  xla_ffi::Metadata &metadata = *reinterpret_cast<xla_ffi::MetadataExtension *>(frame.extension)->metadata;
  metadata.version = {sizeof metadata.version, nullptr, xla_ffi::kMajor, xla_ffi::kMinor};
  metadata.traits = traits;
  metadata.stateType = stateType;
  return true;
}

/// Runs a stage of the custom call. XLA of another ABI is an error.
xla_ffi::Error *run(const xla_ffi::CallFrame &frame, xla_ffi::Error *(*stage)(const xla_ffi::CallFrame &)) {
  if (frame.structSize < sizeof frame || frame.api->structSize < sizeof *frame.api)
    return makeError(
        frame, xla_ffi::ErrorCode::InvalidArgument,
        "this jaxlib is older than the interface that libfp8_jax.so was built for: install a newer jaxlib");
  return stage(frame);
}

} // namespace

// Names of C, which Python looks up.
// NOLINTBEGIN(readability-identifier-naming)

/// XLA's number for the type of Instance and what it knows of it, which are registered before the custom
/// call.
extern "C" xla_ffi::TypeId *fp8_jax_type_id() { return &Instance::id; }
extern "C" const xla_ffi::TypeInfo *fp8_jax_type_info() {
  static constexpr xla_ffi::TypeInfo kInfo = {sizeof kInfo, nullptr,
                                              [](void *object) { delete static_cast<Instance *>(object); }};
  return &kInfo;
}

/// The stages of the custom call: when XLA loads a program, and in every call.
extern "C" xla_ffi::Error *fp8_instantiate(xla_ffi::CallFrame *frame) {
  return describeHandler(*frame, Instance::id) ? nullptr : run(*frame, instantiate);
}
extern "C" xla_ffi::Error *fp8_call(xla_ffi::CallFrame *frame) {
  return describeHandler(*frame, {}) ? nullptr : run(*frame, call);
}

/// On a GPU there is one stage more. The work of an entry point that is capturable may become a part of a
/// graph.
extern "C" xla_ffi::Error *fp8_open_gpu(xla_ffi::CallFrame *frame) {
  return describeHandler(*frame, {}) ? nullptr : run(*frame, openGPU);
}
extern "C" xla_ffi::Error *fp8_call_gpu(xla_ffi::CallFrame *frame) {
  return describeHandler(*frame, {}) ? nullptr : run(*frame, callOnGPU);
}
extern "C" xla_ffi::Error *fp8_call_gpu_capturable(xla_ffi::CallFrame *frame) {
  return describeHandler(*frame, {}, xla_ffi::kCommandBufferCompatible) ? nullptr : run(*frame, callOnGPU);
}

// NOLINTEND(readability-identifier-naming)
