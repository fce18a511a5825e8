// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prepared calls by value, against sessions on the same library, and what
// preparation refuses.

#include "TestSupport.h"

using namespace fp8rt_test;

namespace {

class PreparedTest : public ::testing::Test {
protected:
  void SetUp() override {
    library = loadFixture();
    ASSERT_TRUE(library);
    state = newState(library);
  }

  /// Entry 'main' with a ramp of `size` elements. The ramp is its only result of dynamic shape.
  fp8rt_status prepareMain(fp8rt_state *used, int64_t size = 4) {
    int64_t shape[] = {size};
    DLTensor ramp = {};
    ramp.device = {kDLCPU, 0};
    ramp.ndim = 1;
    ramp.dtype = {kDLInt, 64, 1};
    ramp.shape = shape;
    const DLTensor *results[7] = {};
    results[4] = &ramp;
    fp8rt_prepared *out = nullptr;
    fp8rt_status status = fp8rt_prepare(library.get(), "main", used, nullptr, 6, results, 7, &out);
    prepared.reset(out);
    return status;
  }
  fp8rt_status call() {
    void *arguments[] = {w, m, x, &n, scale, history};
    void *results[] = {nullptr, mNext, &loss, &half, ramp, nullptr, nullptr};
    return fp8rt_prepared_call(prepared.get(), arguments, results);
  }
  fp8rt_status callWithState() {
    void *arguments[] = {w, m, x, &n, nullptr, nullptr};
    void *results[] = {wNext, mNext, &loss, &half, ramp, nullptr, nullptr};
    return fp8rt_prepared_call(prepared.get(), arguments, results);
  }
  fp8rt_status describe(const char *entry, std::vector<const DLTensor *> arguments,
                        std::vector<const DLTensor *> results) {
    fp8rt_prepared *out = nullptr;
    fp8rt_status status =
        fp8rt_prepare(library.get(), entry, nullptr, arguments.data(), uint32_t(arguments.size()),
                      results.data(), uint32_t(results.size()), &out);
    EXPECT_EQ(out == nullptr, status != FP8RT_OK);
    prepared.reset(out);
    return status;
  }

  Library library;
  State state;
  Prepared prepared;
  float w[6] = {1, -2, 3, -4, 5, -6}, wNext[6] = {}, x[3] = {0.5f, -1.5f, 0.25f};
  float scale[2] = {1, 1}, history[6] = {}, loss = 0;
  uint16_t m[4] = {10, 20, 30, 40}, mNext[4] = {}, half = 0;
  int32_t n = 4;
  int64_t ramp[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
};

TEST_F(PreparedTest, CallsDoWhatSessionsDo) {
  Literal<float> sw{kF32, {2, 3}, {1, -2, 3, -4, 5, -6}};
  Literal<uint16_t> sm{kBF16, {4}, {10, 20, 30, 40}};
  Literal<float> sx{kF32, {3}, {0.5f, -1.5f, 0.25f}};
  Literal<int32_t> sn{kI32, {}, {4}};
  Session session = newSession(library, "main", state);
  const DLTensor *all[] = {&sw.view, &sm.view, &sx.view, &sn.view};
  for (uint32_t i = 0; i < 4; ++i)
    ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), i, all[i]));
  ASSERT_FP8RT(prepareMain(nullptr));
  for (int step = 0; step < 4; ++step) {
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
    ASSERT_FP8RT(call());
    EXPECT_EQ(values<float>(fp8rt_session_argument(session.get(), 0)), std::vector<float>(w, w + 6));
    EXPECT_EQ(values<float>(fp8rt_session_result(session.get(), 2)), std::vector<float>{loss});
    EXPECT_EQ(values<uint16_t>(fp8rt_session_result(session.get(), 3)), std::vector<uint16_t>{half});
    EXPECT_EQ(values<int64_t>(fp8rt_session_result(session.get(), 4)), std::vector<int64_t>(ramp, ramp + 4));
    EXPECT_EQ(values<float>(fp8rt_state_tensor(state.get(), "scale")), std::vector<float>(scale, scale + 2));
    EXPECT_EQ(values<float>(fp8rt_state_tensor(state.get(), "amax_history")),
              std::vector<float>(history, history + 6));
    EXPECT_EQ(mNext[3], 41) << "values of the next step are the caller's to pass";
  }
  EXPECT_EQ(ramp[4], -1);
}

TEST_F(PreparedTest, TheStateStandsForWhatIsLeftOut) {
  ASSERT_FP8RT(prepareMain(state.get()));
  ASSERT_FP8RT(callWithState());
  EXPECT_EQ(values<float>(fp8rt_state_tensor(state.get(), "amax_history"))[4], 1.5f);
  EXPECT_EQ(history[4], 0);
  // A pointer that is given all the same is used.
  ASSERT_FP8RT(call());
  EXPECT_EQ(history[4], 1.5f);
}

TEST_F(PreparedTest, HandlesKeepTheirLibraryAndState) {
  ASSERT_FP8RT(prepareMain(state.get()));
  state.reset();
  library.reset();
  ASSERT_FP8RT(callWithState());
  EXPECT_EQ(mNext[0], 11);
}

TEST_F(PreparedTest, ResultsOfDynamicShape) {
  ASSERT_FP8RT(prepareMain(nullptr));
  n = 5;
  EXPECT_FP8RT_ERROR(call(), FP8RT_CALL_FAILED,
                     "entry 'main' failed: result 4 'ramp' is i64[5], prepared for i64[4]");
  n = 4;
  ASSERT_FP8RT(call());
  n = -1;
  EXPECT_FP8RT_ERROR(call(), FP8RT_CALL_FAILED, "entry 'main' failed: no memory for result 4");
}

TEST_F(PreparedTest, ArgumentsOfDynamicShape) {
  Literal<float> given{kF32, {3}, {1, 2, 4}};
  ASSERT_FP8RT(describe("evaluate", {&given.view, nullptr, nullptr}, {nullptr}));
  void *arguments[] = {given.data.data(), scale, history}, *results[] = {&loss};
  ASSERT_FP8RT(fp8rt_prepared_call(prepared.get(), arguments, results));
  EXPECT_EQ(loss, 7);
  given.shape[0] = 2; // the handle has its own
  ASSERT_FP8RT(fp8rt_prepared_call(prepared.get(), arguments, results));
  EXPECT_EQ(loss, 7);
}

TEST_F(PreparedTest, WrongDescriptions) {
  Literal<float> x4{kF32, {4}, {}}, x3{kF32, {3}, {}}, matrix{kF32, {3, 1}, {}}, negative{kF32, {-3}, {}};
  Literal<int32_t> integers{kI32, {3}, {}};
  auto expect = [&](const DLTensor &tensor, fp8rt_status status, const char *part) {
    EXPECT_FP8RT_ERROR(describe("backward", {&tensor, nullptr}, {nullptr}), status, part);
  };
  const char *mismatch = "entry 'backward': argument 0 'saved': it is f32[3], the given tensor ";
  expect(x4.view, FP8RT_MISMATCH, (std::string(mismatch) + "f32[4]").c_str());
  expect(matrix.view, FP8RT_MISMATCH, (std::string(mismatch) + "f32[3,1]").c_str());
  expect(integers.view, FP8RT_MISMATCH, (std::string(mismatch) + "i32[3]").c_str());
  int64_t strides[] = {2};
  x3.view.strides = strides;
  expect(x3.view, FP8RT_INVALID_ARGUMENT, "not row-major without gaps");
  strides[0] = 1;
  EXPECT_EQ(describe("backward", {&x3.view, nullptr}, {nullptr}), FP8RT_OK) << fp8rt_last_error();
  x3.view.device = {kDLCUDA, 0};
  expect(x3.view, FP8RT_INVALID_ARGUMENT, "not in host memory");
  x3.view.device = {kDLCPU, 0};
  x3.view.dtype = {kDLFloat, 32, 4};
  expect(x3.view, FP8RT_MISMATCH, "the given tensor of type");
  EXPECT_FP8RT_ERROR(describe("evaluate", {&negative.view, nullptr, nullptr}, {nullptr}), FP8RT_MISMATCH,
                     "argument 0 'x'");
  EXPECT_FP8RT_ERROR(describe("evaluate", {nullptr, nullptr, nullptr}, {nullptr}), FP8RT_INVALID_ARGUMENT,
                     "argument 0 'x': it is f32[?]: describe it");
  EXPECT_FP8RT_ERROR(describe("backward", {nullptr}, {nullptr}), FP8RT_INVALID_ARGUMENT,
                     "there are 2 arguments, not 1");
  EXPECT_FP8RT_ERROR(describe("backward", {nullptr, nullptr}, {}), FP8RT_INVALID_ARGUMENT,
                     "there are 1 results, not 0");
  EXPECT_FP8RT_ERROR(describe("none", {}, {}), FP8RT_NOT_FOUND, "no entry 'none'");
  fp8rt_prepared *out = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_prepare(library.get(), "main", nullptr, nullptr, 6, nullptr, 7, &out),
                     FP8RT_INVALID_ARGUMENT, "result 4 'ramp': it is i64[?]: describe it");
  Library other = loadFixture();
  EXPECT_FP8RT_ERROR(prepareMain(newState(other).get()), FP8RT_INVALID_ARGUMENT, "of another library");
}

TEST_F(PreparedTest, FailuresAreTheCodesOwnWords) {
  ASSERT_FP8RT(describe("failing", {}, {}));
  void *none[1] = {};
  EXPECT_FP8RT_ERROR(fp8rt_prepared_call(prepared.get(), none, none), FP8RT_CALL_FAILED,
                     "entry 'failing' failed: it always fails");
  EXPECT_FP8RT_ERROR(fp8rt_prepared_call(nullptr, none, none), FP8RT_INVALID_ARGUMENT, "prepared is null");
  EXPECT_FP8RT_ERROR(fp8rt_prepared_call(prepared.get(), nullptr, none), FP8RT_INVALID_ARGUMENT,
                     "arguments is null");
}

} // namespace
