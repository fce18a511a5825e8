// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Profilers by value: the kernels that the fixture lists and records, what resets them, and what is
// refused.

#include "TestSupport.h"

#include <chrono>
#include <cstdlib>

using namespace fp8rt_test;

namespace {

/// Entry 'forward' of the fixture records its kernel 1 once and its kernel 0 three times, with other
/// code before.
class ProfilerTest : public ::testing::Test {
protected:
  void SetUp() override {
    library = loadFixture();
    state = newState(library);
    session = newSession(library, "forward", state);
    ASSERT_TRUE(session);
    ASSERT_FP8RT(fp8rt_session_zero_missing(session.get()));
    fp8rt_profiler *created = nullptr;
    ASSERT_FP8RT(fp8rt_profiler_create(library.get(), &created));
    profiler.reset(created);
  }

  fp8rt_kernel kernel(uint32_t index) {
    fp8rt_kernel found = {};
    EXPECT_EQ(fp8rt_profiler_kernel(profiler.get(), index, &found), FP8RT_OK);
    return found;
  }

  Library library;
  State state;
  Session session;
  Profiler profiler;
};

TEST_F(ProfilerTest, ListsKernels) {
  ASSERT_EQ(fp8rt_profiler_num_kernels(profiler.get()), 2u);
  fp8rt_kernel first = kernel(0), second = kernel(1);
  EXPECT_STREQ(first.name, "double_fc");
  EXPECT_STREQ(first.kind, "elementwise");
  ASSERT_EQ(first.num_sites, 2u);
  EXPECT_STREQ(first.sites[0], "h1/fc");
  EXPECT_STREQ(first.sites[1], "fc");
  EXPECT_EQ(first.bytes_read, 12);
  EXPECT_EQ(first.bytes_written, 12);
  EXPECT_EQ(first.operations, 3);
  EXPECT_STREQ(second.name, "sum");
  EXPECT_EQ(second.num_sites, 0u);
  EXPECT_EQ(second.bytes_read, -1);
  EXPECT_EQ(second.bytes_written, 4);
  EXPECT_EQ(second.operations, -1);
}

TEST_F(ProfilerTest, CountsCallsAndTimes) {
  ASSERT_FP8RT(fp8rt_session_step(session.get())); // not measured
  ASSERT_FP8RT(fp8rt_session_profile(session.get(), profiler.get()));
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i)
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(kernel(0).calls, 6u);
  EXPECT_EQ(kernel(1).calls, 2u);
  double outside = fp8rt_profiler_outside_seconds(profiler.get());
  EXPECT_GT(outside, 0);
  EXPECT_GE(kernel(0).seconds, 0);
  EXPECT_LE(kernel(0).seconds + kernel(1).seconds + outside, seconds);
  // The fixture waits a millisecond in kernel 1, in each step.
  EXPECT_GE(kernel(1).seconds, 2e-3);
  EXPECT_LT(kernel(0).seconds, kernel(1).seconds);

  fp8rt_profiler_reset(profiler.get());
  EXPECT_EQ(kernel(0).calls, 0u);
  EXPECT_EQ(kernel(1).seconds, 0);
  EXPECT_EQ(fp8rt_profiler_outside_seconds(profiler.get()), 0);

  ASSERT_FP8RT(fp8rt_session_profile(session.get(), nullptr));
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
  EXPECT_EQ(kernel(0).calls, 0u);
}

TEST_F(ProfilerTest, CountsCallsOfAPreparedEntryPoint) {
  fp8rt_prepared *created = nullptr;
  ASSERT_FP8RT(fp8rt_prepare(library.get(), "forward", state.get(), nullptr, 3, nullptr, 3, &created));
  Prepared prepared(created);
  float x[] = {1, 2, 4}, loss = 0, saved[3];
  int32_t count = 0;
  void *arguments[] = {x, nullptr, nullptr}, *results[] = {&loss, saved, &count};
  ASSERT_FP8RT(fp8rt_prepared_call(prepared.get(), arguments, results)); // not measured
  ASSERT_FP8RT(fp8rt_prepared_profile(prepared.get(), profiler.get()));
  for (int i = 0; i < 2; ++i)
    ASSERT_FP8RT(fp8rt_prepared_call(prepared.get(), arguments, results));
  EXPECT_EQ(kernel(0).calls, 6u);
  EXPECT_EQ(kernel(1).calls, 2u);
  EXPECT_GE(kernel(1).seconds, 2e-3);
  EXPECT_EQ(loss, 7);
  ASSERT_FP8RT(fp8rt_prepared_profile(prepared.get(), nullptr));
  ASSERT_FP8RT(fp8rt_prepared_call(prepared.get(), arguments, results));
  EXPECT_EQ(kernel(1).calls, 2u);
}

/// A profiler may be destroyed while a session uses it.
TEST_F(ProfilerTest, LivesAsLongAsItsSessions) {
  ASSERT_FP8RT(fp8rt_session_profile(session.get(), profiler.get()));
  profiler.reset();
  library.reset();
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
}

TEST_F(ProfilerTest, RefusesWrongUse) {
  fp8rt_kernel found = {};
  EXPECT_FP8RT_ERROR(fp8rt_profiler_kernel(profiler.get(), 2, &found), FP8RT_INVALID_ARGUMENT,
                     "out of range");
  EXPECT_FP8RT_ERROR(fp8rt_profiler_kernel(profiler.get(), 0, nullptr), FP8RT_INVALID_ARGUMENT, "null");
  fp8rt_profiler *created = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_profiler_create(nullptr, &created), FP8RT_INVALID_ARGUMENT, "library is null");
  Library other = loadFixture();
  Session foreign = newSession(other, "forward", newState(other));
  EXPECT_FP8RT_ERROR(fp8rt_session_profile(foreign.get(), profiler.get()), FP8RT_INVALID_ARGUMENT,
                     "another library");
  fp8rt_prepared *out = nullptr;
  ASSERT_FP8RT(fp8rt_prepare(other.get(), "forward", newState(other).get(), nullptr, 3, nullptr, 3, &out));
  Prepared prepared(out);
  EXPECT_FP8RT_ERROR(fp8rt_prepared_profile(prepared.get(), profiler.get()), FP8RT_INVALID_ARGUMENT,
                     "another library");
  EXPECT_FP8RT_ERROR(fp8rt_prepared_profile(nullptr, profiler.get()), FP8RT_INVALID_ARGUMENT,
                     "prepared is null");
  EXPECT_FP8RT_ERROR(fp8rt_session_profile(nullptr, profiler.get()), FP8RT_INVALID_ARGUMENT,
                     "session is null");
  EXPECT_EQ(fp8rt_profiler_num_kernels(nullptr), 0u);
}

/// Tries to create a profiler of a library with that list of kernels; null for none.
fp8rt_status createWithList(const char *list) {
  setenv("FP8RT_TEST_MANIFEST",
         R"({"version": 1, "recipe": "none", "target": "cpu", "entries": [{"name": "main", "arguments": [],
             "results": []}], "state": {"layout_hash": "", "columns": [], "tensors": []}, "sites": []})",
         /*overwrite=*/1);
  list ? setenv("FP8RT_TEST_KERNELS", list, /*overwrite=*/1) : unsetenv("FP8RT_TEST_KERNELS");
  fp8rt_library *library = nullptr;
  EXPECT_EQ(fp8rt_library_load(ANY_MANIFEST, &library), FP8RT_OK) << fp8rt_last_error();
  fp8rt_profiler *created = nullptr;
  fp8rt_status status = fp8rt_profiler_create(library, &created);
  fp8rt_profiler_destroy(created);
  fp8rt_library_destroy(library);
  return status;
}

TEST(ProfilerListTest, RefusesWrongLists) {
  EXPECT_EQ(createWithList(R"({"sites": [], "kernels": []})"), FP8RT_OK) << fp8rt_last_error();
  EXPECT_FP8RT_ERROR(createWithList(nullptr), FP8RT_UNSUPPORTED, "compile the program again");
  const char *wrong[] = {
      "",
      "[]",
      R"({"kernels": []})",
      R"({"sites": [], "kernels": [{"name": "k"}]})",
      R"({"sites": [], "kernels": [{"name": "k", "kind": "x", "sites": [0], "read": 1, "written": 1, "operations": 1}]})",
      R"({"sites": [], "kernels": [{"name": "k", "kind": "x", "sites": [], "read": "1", "written": 1, "operations": 1}]})"};
  for (const char *list : wrong)
    EXPECT_FP8RT_ERROR(createWithList(list), FP8RT_CORRUPT, "the library's list of kernels");
}

} // namespace
