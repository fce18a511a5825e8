// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches, copies and tensor maps for compiled code, and which kernel an error belongs to.

#include "Launcher.h"

#include "../core/Status.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

using namespace fp8rt;
using namespace fp8rt::cuda;

/// The table's functions: they find the launcher, and turn Errors into a status and a text.
struct Launcher::Functions {
  template <typename Body>
  static int guard(void *context, Body &&body) {
    auto &self = *static_cast<Launcher *>(context);
    if (guarded([&] { body(self); }) == FP8RT_OK)
      return 0;
    self.failure = fp8rt_last_error();
    return 1;
  }

  static int launch(void *context, uint32_t kernel, int32_t line, uint64_t x, uint64_t y, uint64_t z,
                    void **parameters) {
    return guard(context, [&](Launcher &self) { self.launch(kernel, line, {x, y, z}, parameters); });
  }
  static int copy(void *context, void *target, const void *source, uint64_t bytes) {
    return guard(context, [&](Launcher &self) { self.copy(target, source, bytes); });
  }
  static int fill(void *context, void *target, uint8_t value, uint64_t bytes) {
    return guard(context, [&](Launcher &self) { self.fill(target, value, bytes); });
  }
  static int read(void *context, void *host, const void *source, uint64_t bytes) {
    return guard(context, [&](Launcher &self) { self.read(host, source, bytes); });
  }
  static int check(void *context, const void *flag, const char *message) {
    return guard(context, [&](Launcher &self) { self.check(flag, message); });
  }
  static int symbol(void *context, uint32_t number, void **outAddress) {
    return guard(context, [&](Launcher &self) { *outAddress = toPointer(self.program->symbol(number)); });
  }
  static int allocate(void *context, uint64_t bytes, void **outMemory) {
    return guard(context, [&](Launcher &self) { *outMemory = self.allocate(bytes); });
  }
  static int release(void *context, void *memory) {
    return guard(context, [&](Launcher &self) { self.release(memory); });
  }
  static int tensorMap(void *context, void *outMap, uint32_t type, uint32_t rank, void *base,
                       const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                       uint32_t swizzle) {
    return guard(context, [&](Launcher &self) {
      self.encodeMap(outMap, type, rank, base, sizes, strides, box, swizzle);
    });
  }
  static const char *error(void *context) { return static_cast<Launcher *>(context)->failure.c_str(); }
};

Launcher::Launcher(std::shared_ptr<const DeviceProgram> program)
    : program(std::move(program)), device(this->program->device()), stream(device.stream()) {
  // Libraries of version 1 take that alone.
  table.version = this->program->library()->deviceCode()->version;
  table.context = this;
  table.launch = Functions::launch;
  table.copy = Functions::copy;
  table.fill = Functions::fill;
  table.read = Functions::read;
  table.symbol = Functions::symbol;
  table.allocate = Functions::allocate;
  table.release = Functions::release;
  table.tensor_map = Functions::tensorMap;
  table.error = Functions::error;
  table.check = Functions::check;
}

Launcher::~Launcher() {
  if (inFlight)
    program->memory()->expectUses();
}

bool Launcher::isToWaitForEach() {
  const char *asked = std::getenv("FP8RT_SYNC");
  return asked && std::strcmp(asked, "1") == 0;
}

bool Launcher::isToCheckLater() {
  const char *asked = std::getenv("FP8RT_CHECKS");
  return asked && std::strcmp(asked, "later") == 0;
}

CUresult Launcher::launchChecked(const fp8rt_device_kernel &kernel, CUfunction function,
                                 const uint64_t (&grid)[3], void **parameters) const {
  CUlaunchAttribute cluster = {};
  cluster.id = 4; // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
  cluster.value.clusterDim = {kernel.cluster, 1, 1};
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(grid[0]);
  config.gridDimY = static_cast<unsigned>(grid[1]);
  config.gridDimZ = static_cast<unsigned>(grid[2]);
  config.blockDimX = kernel.threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = kernel.shared_bytes;
  config.hStream = stream;
  config.attrs = &cluster;
  config.numAttrs = kernel.cluster > 1;
  return device.driver().launchKernelEx(&config, function, parameters, nullptr);
}

void Launcher::launch(uint32_t number, int32_t line, const uint64_t (&grid)[3], void **parameters) {
  const fp8rt_device_kernel &kernel = program->kernel(number);
  if (!grid[0] || !grid[1] || !grid[2])
    return;
  auto describeGrid = [&] {
    return program->describeKernel(number, line) + " cannot be launched with " + std::to_string(grid[0]) +
           " x " + std::to_string(grid[1]) + " x " + std::to_string(grid[2]) + " blocks of " +
           std::to_string(kernel.threads) + " threads";
  };
  if (grid[0] > INT32_MAX || grid[1] > UINT16_MAX || grid[2] > UINT16_MAX)
    fail(FP8RT_UNSUPPORTED, describeGrid() + ": a GPU has at most 2147483647 x 65535 x 65535");
  if (timer)
    timer->before(line);
  CUresult code = launchChecked(kernel, program->function(number), grid, parameters);
  device.driver().failForCheck(code);
  if (isOfAKernel(code) && inFlight == 0)
    fail(FP8RT_DEVICE, program->describeKernel(number, line) +
                           " cannot be launched: earlier work of this process on " + device.name() +
                           ", which is not of this step, failed: " + device.driver().describe(code));
  if (isOfAKernel(code))
    fail(FP8RT_DEVICE, describeLateFailure(code));
  if (code == CUDA_ERROR_INVALID_HANDLE && stream != device.stream())
    fail(FP8RT_INVALID_ARGUMENT, "the given stream is none of the primary context of " + device.name() +
                                     ": " + device.driver().describe(code));
  if (code != CUDA_SUCCESS)
    device.driver().check(code, describeGrid());
  ++inFlight;
  lastKernel = number;
  lastLine = line;
  if (timer)
    timer->after();
  if (waitsForEach && !isCapturing)
    wait();
}

std::string Launcher::describeLateFailure(CUresult code) const {
  std::string reason = device.driver().describe(code);
  if (inFlight == 0)
    return "a kernel of the step failed: " + reason + "; with FP8RT_SYNC=1 this error names the kernel";
  std::string last = program->describeKernel(lastKernel, lastLine);
  if (inFlight == 1)
    return last + " failed: " + reason;
  return "one of " + std::to_string(inFlight) + " kernels, the last of them " + last + ", failed: " + reason +
         "; with FP8RT_SYNC=1 this error names the kernel";
}

void Launcher::leave() {
  if (hasAllocated)
    wait();
}

void Launcher::wait() {
  CUresult code = device.driver().streamSynchronize(stream);
  device.driver().failForCheck(code);
  if (isOfAKernel(code))
    fail(FP8RT_DEVICE, describeLateFailure(code));
  device.driver().check(code, "the work of the step cannot be waited for");
  inFlight = 0;
  hasAllocated = false;
}

void Launcher::abandon() noexcept {
  device.driver().synchronize(); // collectives are on a stream of their own
  inFlight = 0;
  hasAllocated = false;
  allocated.clear();
}

void Launcher::refuseCapture(const char *what) const {
  if (isCapturing)
    fail(FP8RT_CALL_FAILED, std::string("the manifest calls the entry capturable, but it ") + what);
}

/// Whether the work becomes part of a graph, of this runtime's or the caller's.
bool Launcher::isInCapture() const {
  int status = 0;
  if (!isCapturing)
    device.driver().check(device.driver().streamIsCapturing(stream, &status),
                          "the stream does not tell whether it is captured");
  return isCapturing || status != 0;
}

void Launcher::check(const void *flag, const char *message) {
  if (checksLater || isInCapture()) {
    if (!program->checks())
      fail(FP8RT_CALL_FAILED, "the compiled code checks a condition that the manifest does not tell of");
    program->checks()->enqueue(flag, message, stream);
    return;
  }
  uint8_t holds = 0;
  read(&holds, flag, sizeof(holds));
  if (!holds)
    fail(FP8RT_CALL_FAILED, message);
}

void Launcher::copy(void *target, const void *source, uint64_t bytes) {
  if (bytes)
    device.driver().check(device.driver().copyOnDevice(toAddress(target), toAddress(source), bytes, stream),
                          "memory of " + device.name() + " cannot be copied");
}

void Launcher::fill(void *target, uint8_t value, uint64_t bytes) {
  if (bytes)
    device.driver().check(device.driver().setBytes(toAddress(target), value, bytes, stream),
                          "memory of " + device.name() + " cannot be set");
}

void Launcher::read(void *host, const void *source, uint64_t bytes) {
  refuseCapture("reads memory of the device");
  wait();
  if (bytes)
    program->memory()->read(host, source, bytes);
}

void *Launcher::allocate(uint64_t bytes) {
  refuseCapture("allocates memory");
  if (bytes == 0)
    return nullptr;
  hasAllocated = true;
  return allocated.emplace_back(allocateBuffer(program->memory(), bytes, DeviceMemory::kAlignment)).get();
}

void Launcher::release(void *memory) {
  for (size_t i = allocated.size(); i-- > 0;)
    if (allocated[i].get() == memory) {
      allocated.erase(allocated.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  if (memory)
    fail(FP8RT_CALL_FAILED, "the compiled code releases memory that it has not allocated");
}

/// CU_TENSOR_MAP_SWIZZLE_… of so many bytes; -1 if there is none.
static int numberOfSwizzle(uint32_t bytes) {
  switch (bytes) {
  case 0:
    return 0;
  case 32:
    return 1;
  case 64:
    return 2;
  case 128:
    return 3;
  default:
    return -1;
  }
}

void Launcher::encodeMap(void *map, uint32_t type, uint32_t rank, void *base, const uint64_t *sizes,
                         const uint64_t *strides, const uint32_t *box, uint32_t swizzle) const {
  // CU_TENSOR_MAP_DATA_TYPE_…, in the order of FP8RT_MAP_…
  static constexpr int kTypes[] = {0 /*UINT8*/, 9 /*BFLOAT16*/, 6 /*FLOAT16*/, 7 /*FLOAT32*/};
  constexpr int kNoInterleave = 0, kPromoteTo256Bytes = 3, kFillWithZeros = 0;
  int pattern = numberOfSwizzle(swizzle);
  if (type >= std::size(kTypes) || rank < 1 || rank > 5 || pattern < 0)
    fail(FP8RT_CALL_FAILED, "the compiled code asks for a tensor map of type " + std::to_string(type) +
                                ", rank " + std::to_string(rank) + " and swizzle " + std::to_string(swizzle));
  const uint32_t steps[] = {1, 1, 1, 1, 1};
  CUresult code =
      device.driver().tensorMapEncodeTiled(map, kTypes[type], rank, base, sizes, strides + 1, box, steps,
                                           kNoInterleave, pattern, kPromoteTo256Bytes, kFillWithZeros);
  if (code == CUDA_SUCCESS)
    return;
  std::string shape, inBytes, boxes;
  for (uint32_t i = 0; i < rank; ++i) {
    shape += (i ? "," : "") + std::to_string(sizes[i]);
    inBytes += (i ? "," : "") + std::to_string(strides[i]);
    boxes += (i ? "," : "") + std::to_string(box[i]);
  }
  device.driver().check(code, "there is no tensor map for sizes " + shape + ", strides " + inBytes +
                                  " and box " + boxes + " on " + device.name());
}
