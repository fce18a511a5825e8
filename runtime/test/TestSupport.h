// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Helpers for the runtime's tests: owning handles, temporary files, and tensors
// made from literals.

#ifndef FP8RT_TEST_TESTSUPPORT_H
#define FP8RT_TEST_TESTSUPPORT_H

#include "fp8rt/owned.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace fp8rt_test {

using namespace fp8rt::owned;

#define ASSERT_FP8RT(call) ASSERT_EQ(call, FP8RT_OK) << fp8rt_last_error()

/// The call fails with that status and a text that contains `part`.
#define EXPECT_FP8RT_ERROR(call, status, part)                                                               \
  do {                                                                                                       \
    EXPECT_EQ(call, status);                                                                                 \
    EXPECT_NE(std::string(fp8rt_last_error()).find(part), std::string::npos)                                 \
        << "the error is: " << fp8rt_last_error();                                                           \
  } while (false)

/// A folder of its own for every test, gone afterwards.
class WithFolder : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "fp8rt-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string &name) const { return folder / name; }

  /// The names of all files in the folder.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename());
    return names;
  }

  std::filesystem::path folder;
};

inline constexpr DLDataType kF32 = {kDLFloat, 32, 1};
inline constexpr DLDataType kBF16 = {kDLBfloat, 16, 1};
inline constexpr DLDataType kI32 = {kDLInt, 32, 1};

/// A tensor with data of its own.
template <typename T>
struct Literal {
  Literal(DLDataType type, std::vector<int64_t> dims, std::vector<T> values)
      : shape(std::move(dims)), data(std::move(values)) {
    view.data = data.data();
    view.device = {kDLCPU, 0};
    view.ndim = static_cast<int32_t>(shape.size());
    view.dtype = type;
    view.shape = shape.data();
  }
  Literal(const Literal &) = delete;

  std::vector<int64_t> shape;
  std::vector<T> data;
  DLTensor view = {};
};

/// The elements of a tensor.
template <typename T>
std::vector<T> values(const DLTensor *tensor) {
  if (!tensor)
    return {};
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i)
    count *= tensor->shape[i];
  const T *data = reinterpret_cast<const T *>(static_cast<const char *>(tensor->data) + tensor->byte_offset);
  return std::vector<T>(data, data + count);
}

/// Calls a function that creates a handle; the test fails if it fails.
template <typename Handle, typename Create>
Handle make(Create create) {
  typename Handle::pointer handle = nullptr;
  EXPECT_EQ(create(&handle), FP8RT_OK) << fp8rt_last_error();
  return Handle(handle);
}

Library loadFixture();
State newState(const Library &library);
Session newSession(const Library &library, const char *entry, const State &state);
Tensors newTensors();
/// Null, with the test failed, if it cannot be read.
Tensors readTensors(const std::string &path);

} // namespace fp8rt_test

#endif // FP8RT_TEST_TESTSUPPORT_H
