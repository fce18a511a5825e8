// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any description of the tensors of a call: sessions and prepared calls refuse it, or can use it.

#include "FuzzSupport.h"

#include "fp8rt/owned.h"

#include <fuzzer/FuzzedDataProvider.h>

using namespace fp8rt_fuzz;
using namespace fp8rt::owned;

namespace {

/// Sizes of the fixture's arguments, and some that no tensor has.
constexpr int64_t kSizes[] = {0, 1, 2, 3, 4, 6, 8, -1, INT64_MAX, INT64_MIN, int64_t(1) << 32};

/// A tensor as a careless caller describes it; its memory has 256 bytes.
struct AnyTensor {
  explicit AnyTensor(FuzzedDataProvider &input) {
    tensor.data = input.ConsumeProbability<float>() < 0.9f ? memory : nullptr;
    tensor.device = {input.PickValueInArray({kDLCPU, kDLCPU, kDLCPU, kDLCUDA}), 0};
    tensor.ndim = input.ConsumeIntegralInRange<int32_t>(-1, 4);
    tensor.dtype = {static_cast<uint8_t>(input.ConsumeIntegralInRange(0, 20)),
                    input.PickValueInArray<uint8_t>({8, 16, 32, 64, 0, 7}),
                    input.PickValueInArray<uint16_t>({1, 0, 4})};
    for (int i = 0; i < 4; ++i) {
      shape[i] = input.PickValueInArray(kSizes);
      strides[i] = input.PickValueInArray(kSizes);
    }
    tensor.shape = input.ConsumeProbability<float>() < 0.95f ? shape : nullptr;
    tensor.strides = input.ConsumeBool() ? strides : nullptr;
    tensor.byte_offset = input.PickValueInArray<uint64_t>({0, 0, 0, 4, 1});
  }
  AnyTensor(const AnyTensor &) = delete;

  /// Whether reading its elements stays within the memory.
  bool fits() const {
    uint64_t bytes = tensor.dtype.bits / 8;
    for (int32_t i = 0; i < tensor.ndim && tensor.shape; ++i)
      if (shape[i] < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[i]), &bytes))
        return true; // no tensor at all: it must be refused
    return bytes + tensor.byte_offset <= sizeof(memory);
  }

  alignas(64) char memory[256] = {};
  int64_t shape[4], strides[4];
  DLTensor tensor = {};
};

} // namespace

static void runSession(const fp8rt_library *library, fp8rt_state *state, FuzzedDataProvider &input) {
  const char *entries[] = {"main", "evaluate", "forward", "backward", "twins", "nobody"};
  fp8rt_session *created = nullptr;
  fp8rt_status status = fp8rt_session_create(library, input.PickValueInArray(entries),
                                             input.ConsumeBool() ? state : nullptr, &created);
  checkError(status);
  if (status != FP8RT_OK)
    return;
  Session session(created);
  std::vector<std::unique_ptr<AnyTensor>> tensors; // bound ones must live
  while (input.remaining_bytes() > 0) {
    tensors.push_back(std::make_unique<AnyTensor>(input));
    if (!tensors.back()->fits())
      continue;
    auto index = input.ConsumeIntegralInRange<uint32_t>(0, 7);
    auto give = input.ConsumeBool() ? fp8rt_session_set_argument : fp8rt_session_bind_argument;
    checkError(give(created, index, &tensors.back()->tensor));
  }
  checkError(fp8rt_session_zero_missing(created));
  checkError(fp8rt_session_step(created));
}

static void prepare(const fp8rt_library *library, fp8rt_state *state, FuzzedDataProvider &input) {
  std::vector<std::unique_ptr<AnyTensor>> tensors;
  auto list = [&](uint32_t count) {
    std::vector<const DLTensor *> described(count);
    for (const DLTensor *&each : described)
      if (input.ConsumeBool()) {
        tensors.push_back(std::make_unique<AnyTensor>(input));
        each = &tensors.back()->tensor;
      }
    return described;
  };
  auto arguments = list(input.ConsumeIntegralInRange<uint32_t>(0, 7));
  auto results = list(input.ConsumeIntegralInRange<uint32_t>(0, 7));
  fp8rt_prepared *created = nullptr;
  checkError(fp8rt_prepare(library, "main", input.ConsumeBool() ? state : nullptr, arguments.data(),
                           static_cast<uint32_t>(arguments.size()), results.data(),
                           static_cast<uint32_t>(results.size()), &created));
  fp8rt_prepared_destroy(created);
}

static Library loadFixture() {
  fp8rt_library *library = nullptr;
  require(fp8rt_library_load(FIXTURE, &library) == FP8RT_OK, "the fixture loads");
  return Library(library);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Library library = loadFixture();
  fp8rt_state *created = nullptr;
  require(fp8rt_state_create(library.get(), &created) == FP8RT_OK, "a state is created");
  State state(created);
  FuzzedDataProvider input(data, size);
  input.ConsumeBool() ? runSession(library.get(), created, input) : prepare(library.get(), created, input);
  return 0;
}
