// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libcudart.so.12 and .13, called as a program calls them: fat binaries are registered as by nvcc's host
// code, which no compiler is needed for.

#include "cudart/Abi.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace {

const char *const kPtx = R"(
.version 8.0
.target sm_89
.address_size 64
.visible .const .align 4 .u32 factor = 2;
.visible .global .align 4 .u32 calls = 0;
.visible .global .attribute(.managed) .align 4 .u32 shared = 5;
.visible .entry scale(.param .u64 x, .param .u32 n) {
  .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p;
  ld.param.u64 %rd0, [x]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  setp.ge.u32 %p, %r1, %r0;
  @%p ret;
  mad.wide.u32 %rd1, %r1, 4, %rd0;
  ld.global.u32 %r4, [%rd1]; ld.const.u32 %r5, [factor]; ld.global.u32 %r6, [shared];
  mad.lo.u32 %r4, %r4, %r5, %r6;
  st.global.u32 [%rd1], %r4;
  red.global.add.u32 [calls], 1;
  ret;
}
)";

/// A fat binary with the text, and the wrapper around it.
struct FatBinary {
  explicit FatBinary(const std::string &text) {
    struct Entry {
      uint16_t kind = 1, version = 0x101;
      uint32_t headerBytes = 64;
      uint64_t bytes = 0;
      uint32_t compressed = 0, options = 0, ptxVersion = 0, arch = 89, name[2] = {};
      uint64_t flags = 0x11, zero = 0, uncompressed = 0;
    } entry;
    static_assert(sizeof entry == 64);
    entry.bytes = text.size() + 1;
    const uint64_t size = sizeof entry + entry.bytes;
    const uint32_t magic = 0xBA55ED50;
    const uint16_t head[] = {1, 16};
    add(&magic, sizeof magic);
    add(head, sizeof head);
    add(&size, sizeof size);
    add(&entry, sizeof entry);
    add(text.c_str(), entry.bytes);
    wrapper.image = bytes.data();
  }
  void add(const void *from, size_t count) {
    const char *const begin = static_cast<const char *>(from);
    bytes.insert(bytes.end(), begin, begin + count);
  }
  std::vector<char> bytes;
  struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void *image = nullptr, *rest = nullptr;
  } wrapper;
};

// A program has one of these for each kernel and variable: their addresses count.
char scaleStub, factorShadow, callsShadow;
void *sharedPointer;

class Runtime : public testing::TestWithParam<int> {
protected:
  Runtime() : binary(kPtx) {
    const std::string path = std::string(FP8CUDART_FOLDER "/libcudart.so.") + std::to_string(GetParam());
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_TRUE(library) << dlerror();
    handle = get<void **, const void *>("__cudaRegisterFatBinary")(&binary.wrapper);
    get<void, void **, const void *, const char *, const char *, int, void *, void *, void *, void *, int *>(
        "__cudaRegisterFunction")(handle, &scaleStub, "scale", "scale", -1, nullptr, nullptr, nullptr,
                                  nullptr, nullptr);
    addVariable(&factorShadow, "factor");
    addVariable(&callsShadow, "calls");
    get<void, void **, void **, const char *, const char *, int, size_t, int, int>(
        "__cudaRegisterManagedVar")(handle, &sharedPointer, nullptr, "shared", 0, 4, 0, 0);
  }
  ~Runtime() override {
    if (handle)
      unregister();
    EXPECT_EQ(call("cudaDeviceReset"), cudaSuccess);
  }
  void addVariable(const void *host, const char *name) {
    get<void, void **, const void *, const char *, const char *, int, size_t, int, int>("__cudaRegisterVar")(
        handle, host, name, name, 0, 4, 0, 0);
  }
  void unregister() {
    get<void, void **>("__cudaUnregisterFatBinary")(handle);
    handle = nullptr;
  }

  template <class Result, class... Arguments>
  using Entry = Result (*)(Arguments...);
  template <class Result, class... Arguments>
  Entry<Result, Arguments...> get(const char *name) {
    void *const entry = dlsym(library, name);
    EXPECT_TRUE(entry) << name;
    return reinterpret_cast<Entry<Result, Arguments...>>(entry);
  }
  /// The argument's types are those of the entry point.
  template <class... Arguments>
  cudaError_t call(const char *name, Arguments... arguments) {
    return get<cudaError_t, Arguments...>(name)(arguments...);
  }

  unsigned *upload(const std::vector<unsigned> &values) {
    void *out = nullptr;
    EXPECT_EQ(call("cudaMalloc", &out, values.size() * 4), cudaSuccess);
    EXPECT_EQ(call("cudaMemcpy", out, static_cast<const void *>(values.data()), values.size() * 4,
                   cudaMemcpyHostToDevice),
              cudaSuccess);
    return static_cast<unsigned *>(out);
  }
  std::vector<unsigned> read(const unsigned *from, size_t count) {
    std::vector<unsigned> out(count);
    EXPECT_EQ(call("cudaMemcpy", static_cast<void *>(out.data()), static_cast<const void *>(from), count * 4,
                   cudaMemcpyDefault),
              cudaSuccess);
    return out;
  }
  cudaError_t launch(unsigned *x, unsigned n, unsigned blocks, unsigned threads) {
    void *parameters[] = {&x, &n};
    return call("cudaLaunchKernel", static_cast<const void *>(&scaleStub), dim3{blocks, 1, 1},
                dim3{threads, 1, 1}, static_cast<void **>(parameters), size_t(0), cudaStream_t(nullptr));
  }

  FatBinary binary;
  void *library = nullptr;
  void **handle = nullptr;
};

TEST_P(Runtime, LaunchesWhatIsRegistered) {
  unsigned *const x = upload({1, 2, 3, 4, 5});
  const unsigned three = 3;
  ASSERT_EQ(call("cudaMemcpyToSymbol", static_cast<const void *>(&factorShadow),
                 static_cast<const void *>(&three), size_t(4), size_t(0), cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(launch(x, 5, 2, 4), cudaSuccess);
  EXPECT_EQ(read(x, 5), (std::vector<unsigned>{8, 11, 14, 17, 20}));
  void *calls = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(call("cudaGetSymbolAddress", &calls, static_cast<const void *>(&callsShadow)), cudaSuccess);
  ASSERT_EQ(call("cudaGetSymbolSize", &bytes, static_cast<const void *>(&callsShadow)), cudaSuccess);
  EXPECT_EQ(bytes, 4U);
  EXPECT_EQ(read(static_cast<unsigned *>(calls), 1), std::vector<unsigned>{5});
  EXPECT_EQ(call("cudaFree", static_cast<void *>(x)), cudaSuccess);
}

TEST_P(Runtime, LaunchesAsTheStubsOfKernelsDo) {
  unsigned *x = upload({1, 2, 3}), n = 3;
  const void *kernel = nullptr;
  ASSERT_EQ(call("__cudaGetKernel", &kernel, static_cast<const void *>(&scaleStub)), cudaSuccess);
  EXPECT_EQ((get<unsigned, dim3, dim3, size_t, CUstream>("__cudaPushCallConfiguration")({1, 1, 1}, {32, 1, 1},
                                                                                        64, nullptr)),
            0U);
  dim3 grid{}, block{};
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(call("__cudaPopCallConfiguration", &grid, &block, &shared, static_cast<void *>(&stream)),
            cudaSuccess);
  EXPECT_EQ(block.x, 32U);
  EXPECT_EQ(shared, 64U);
  void *parameters[] = {&x, &n};
  ASSERT_EQ(call("__cudaLaunchKernel", kernel, grid, block, static_cast<void **>(parameters), shared, stream),
            cudaSuccess);
  EXPECT_EQ(read(x, 3), (std::vector<unsigned>{7, 9, 11}));
  EXPECT_EQ(call("__cudaPopCallConfiguration", &grid, &block, &shared, static_cast<void *>(&stream)),
            cudaErrorMissingConfiguration);
}

TEST_P(Runtime, ManagedVariablesAreTheHostsToo) {
  ASSERT_EQ((get<char, void **>("__cudaInitModule")(handle)), 1);
  auto *const shared = static_cast<unsigned *>(sharedPointer);
  EXPECT_EQ(*shared, 5U);
  *shared = 100;
  unsigned *const x = upload({1});
  ASSERT_EQ(launch(x, 1, 1, 1), cudaSuccess);
  EXPECT_EQ(read(x, 1), std::vector<unsigned>{102});
  cudaPointerAttributes13 attributes{};
  attributes.reserved[7] = 77;
  ASSERT_EQ(call("cudaPointerGetAttributes", &attributes, static_cast<const void *>(shared)), cudaSuccess);
  EXPECT_EQ(attributes.own.type, 3);
  // CUDA 12 gives no memory behind the attributes.
  EXPECT_EQ(attributes.reserved[7], GetParam() == 12 ? 77 : 0);
  // A new context has a new one.
  ASSERT_EQ(call("cudaDeviceReset"), cudaSuccess);
  EXPECT_EQ(*static_cast<unsigned *>(sharedPointer), 5U);
}

TEST_P(Runtime, TheLastErrorIsKeptUntilItIsRead) {
  unsigned *const x = upload({1});
  EXPECT_EQ(launch(x, 1, 1, 2000), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(x, 1, 0, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(call("cudaGetDeviceCount", static_cast<int *>(nullptr)), cudaErrorInvalidValue);
  EXPECT_EQ(launch(x, 1, 1, 1), cudaSuccess);
  EXPECT_EQ(call("cudaPeekAtLastError"), cudaErrorInvalidValue);
  EXPECT_EQ(call("cudaGetLastError"), cudaErrorInvalidValue);
  EXPECT_EQ(call("cudaGetLastError"), cudaSuccess);
  const auto text = get<const char *, cudaError_t>("cudaGetErrorName");
  EXPECT_STREQ(text(cudaErrorInvalidDeviceFunction), "cudaErrorInvalidDeviceFunction");
  EXPECT_STREQ(text(cudaError_t(12345)), "unrecognized error code");
}

TEST_P(Runtime, MistakesAreErrors) {
  int place = 0;
  void *out = nullptr;
  EXPECT_EQ(call("cudaGetSymbolAddress", &out, static_cast<const void *>(&place)), cudaErrorInvalidSymbol);
  cudaFuncAttributes attributes{};
  EXPECT_EQ(call("cudaFuncGetAttributes", &attributes, static_cast<const void *>(&place)),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(call("cudaFuncGetAttributes", &attributes, static_cast<const void *>(nullptr)),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(call("cudaMemcpyToSymbol", static_cast<const void *>(&factorShadow),
                 static_cast<const void *>(&place), size_t(4), size_t(1), cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(call("cudaMemcpy", out, static_cast<const void *>(&place), size_t(4), cudaMemcpyKind(7)),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(call("cudaFree", static_cast<void *>(&place)), cudaErrorInvalidValue);
  EXPECT_EQ(call("cudaSetDevice", 1000), cudaErrorInvalidDevice);
  EXPECT_EQ(call("cudaMalloc", &out, size_t(1) << 60), cudaErrorMemoryAllocation);
  EXPECT_EQ(call("cudaStreamSynchronize", reinterpret_cast<cudaStream_t>(&place)),
            cudaErrorInvalidResourceHandle);
  // An entry point that is missing looks at no arguments.
  EXPECT_EQ(call("cudaMallocArray"), cudaErrorNotSupported);
  unregister();
  EXPECT_EQ(launch(nullptr, 0, 1, 1), cudaErrorInvalidDeviceFunction);
}

TEST_P(Runtime, ImagesThatCannotBeLoaded) {
  unsigned *const x = upload({1});
  binary.bytes[20] = 0x7F;
  EXPECT_EQ(int(launch(x, 1, 1, 1)), 209);
  // It is not tried again, and others go on.
  EXPECT_EQ(int(launch(x, 1, 1, 1)), 209);
  EXPECT_EQ(read(x, 1), std::vector<unsigned>{1});
}

TEST_P(Runtime, AttributesAndProperties) {
  int version = 0, major = 0;
  ASSERT_EQ(call("cudaRuntimeGetVersion", &version), cudaSuccess);
  EXPECT_EQ(version / 1000, GetParam());
  ASSERT_EQ(call("cudaDeviceGetAttribute", &major, 75, 0), cudaSuccess);
  cudaDeviceProp12 twelve{};
  cudaDeviceProp13 thirteen{};
  if (GetParam() == 12) {
    ASSERT_EQ(call("cudaGetDeviceProperties_v2", &twelve, 0), cudaSuccess);
    EXPECT_EQ(std::string(twelve.name, 6), "fp8emu");
    EXPECT_EQ(twelve.major, major);
    EXPECT_GT(twelve.clockRate, 0);
    EXPECT_EQ(twelve.memoryPoolsSupported, 1);
  } else {
    ASSERT_EQ(call("cudaGetDeviceProperties", &thirteen, 0), cudaSuccess);
    EXPECT_EQ(std::string(thirteen.name, 6), "fp8emu");
    EXPECT_EQ(thirteen.major, major);
    EXPECT_EQ(thirteen.memoryPoolsSupported, 1);
  }
  cudaFuncAttributes attributes{};
  ASSERT_EQ(call("cudaFuncGetAttributes", &attributes, static_cast<const void *>(&scaleStub)), cudaSuccess);
  EXPECT_EQ(attributes.ptxVersion, 89);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 48 * 1024);
}

TEST_P(Runtime, GraphsHaveTheFormOfTheirVersion) {
  unsigned *x = upload({1, 2}), n = 2;
  void *parameters[] = {&x, &n};
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t first = nullptr, second = nullptr, *list = nullptr;
  const cudaGraphNode_t *const from = &first, *const to = &second;
  ASSERT_EQ(call("cudaGraphCreate", &graph, 0U), cudaSuccess);
  cudaGraphNodeParams node{};
  node.of.kernel = {&scaleStub, {1, 1, 1}, {2, 1, 1}, 0, parameters, nullptr};
  const cudaGraphNode_t *const none = nullptr;
  size_t edges = 0;
  if (GetParam() == 12) {
    ASSERT_EQ(call("cudaGraphAddNode", &first, graph, none, size_t(0), &node), cudaSuccess);
    ASSERT_EQ(call("cudaGraphAddNode", &second, graph, none, size_t(0), &node), cudaSuccess);
    ASSERT_EQ(call("cudaGraphAddDependencies", graph, from, to, size_t(1)), cudaSuccess);
    ASSERT_EQ(call("cudaGraphGetEdges", graph, list, list, &edges), cudaSuccess);
  } else {
    const CUgraphEdgeData *const data = nullptr;
    ASSERT_EQ(call("cudaGraphAddNode", &first, graph, none, data, size_t(0), &node), cudaSuccess);
    ASSERT_EQ(call("cudaGraphAddNode", &second, graph, none, data, size_t(0), &node), cudaSuccess);
    ASSERT_EQ(call("cudaGraphAddDependencies", graph, from, to, data, size_t(1)), cudaSuccess);
    ASSERT_EQ(call("cudaGraphGetEdges", graph, list, list, static_cast<CUgraphEdgeData *>(nullptr), &edges),
              cudaSuccess);
  }
  EXPECT_EQ(edges, 1U);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(call("cudaGraphInstantiate", &exec, graph, 0ULL), cudaSuccess);
  ASSERT_EQ(call("cudaGraphLaunch", exec, cudaStream_t(nullptr)), cudaSuccess);
  EXPECT_EQ(read(x, 2), (std::vector<unsigned>{19, 23}));
}

INSTANTIATE_TEST_SUITE_P(Versions, Runtime, testing::Values(12, 13),
                         [](const auto &version) { return "libcudart" + std::to_string(version.param); });

} // namespace
