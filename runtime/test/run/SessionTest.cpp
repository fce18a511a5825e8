// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions by value: the fixture's arithmetic repeated here, carried arguments
// and state from step to step, and every wrong use.

#include "TestSupport.h"

#include <cmath>
#include <cstring>
#include <sys/mman.h>

using namespace fp8rt_test;

namespace {

/// The computation of entry 'main' of the fixture, in the same order of operations.
struct Reference {
  std::vector<float> w, x, scale{1, 1}, history{0, 0, 0, 0, 0, 0};
  float loss = 0;

  void step() {
    std::vector<float> next(6);
    float sum = 0, xmax = 0, wmax = 0;
    for (size_t i = 0; i < 6; ++i) {
      next[i] = 0.9f * w[i] + 0.01f * x[i % 3] / scale[i / 3];
      sum += next[i];
      wmax = std::fmax(wmax, std::fabs(next[i]));
      xmax = std::fmax(xmax, std::fabs(x[i % 3]));
    }
    w = next;
    loss = sum;
    record(0, xmax);
    record(1, wmax);
  }

  void record(size_t c, float amax) {
    float max = std::fmax(amax, std::fmax(history[2 + c], history[4 + c]));
    history[2 + c] = history[4 + c];
    history[4 + c] = amax;
    scale[c] = 448.0f / max;
  }
};

class SessionTest : public WithFolder {
protected:
  void SetUp() override {
    WithFolder::SetUp();
    library = loadFixture();
    state = newState(library);
    session = newSession(library, "main", state);
    ASSERT_TRUE(session);
  }

  void set(uint32_t index, const DLTensor &tensor) {
    ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), index, &tensor));
  }
  void setAll() {
    set(0, w.view);
    set(1, m.view);
    set(2, x.view);
    set(3, n.view);
  }
  template <typename T>
  std::vector<T> result(uint32_t index) {
    return values<T>(fp8rt_session_result(session.get(), index));
  }
  template <typename T>
  std::vector<T> argument(uint32_t index) {
    return values<T>(fp8rt_session_argument(session.get(), index));
  }

  Library library;
  State state;
  Session session;
  Literal<float> w{kF32, {2, 3}, {1, -2, 3, -4, 5, -6}};
  Literal<uint16_t> m{kBF16, {4}, {10, 20, 30, 40}};
  Literal<float> x{kF32, {3}, {0.5f, -1.5f, 0.25f}};
  Literal<int32_t> n{kI32, {}, {4}};
};

TEST_F(SessionTest, StepsComputeAndCarry) {
  setAll();
  Reference reference{w.data, x.data};
  for (uint16_t step = 1; step <= 5; ++step) {
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
    reference.step();
    EXPECT_EQ(result<float>(0), reference.w);
    EXPECT_EQ(argument<float>(0), reference.w) << "carried in place";
    EXPECT_EQ(argument<uint16_t>(1)[0], 10 + step) << "carried by copying";
    EXPECT_EQ(result<uint16_t>(1)[3], 40 + step);
    EXPECT_EQ(result<float>(2), std::vector<float>{reference.loss});
    EXPECT_EQ(values<float>(fp8rt_state_tensor(state.get(), "scale")), reference.scale);
    EXPECT_EQ(values<float>(fp8rt_state_tensor(state.get(), "amax_history")), reference.history);
  }
}

TEST_F(SessionTest, ResultsOfDynamicShapeFollowTheData) {
  setAll();
  for (int32_t size : {4, 0, 7}) {
    n.data[0] = size;
    set(3, n.view);
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
    std::vector<int64_t> ramp = result<int64_t>(4);
    ASSERT_EQ(ramp.size(), static_cast<size_t>(size));
    for (int32_t i = 0; i < size; ++i)
      EXPECT_EQ(ramp[static_cast<size_t>(i)], i);
  }
}

TEST_F(SessionTest, OnlyCarriedArgumentsAndStateAreWritten) {
  // x lies in memory that cannot be written: a write would end the test.
  void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  std::memcpy(page, x.data.data(), 12);
  ASSERT_EQ(mprotect(page, 4096, PROT_READ), 0);
  setAll();
  DLTensor locked = x.view;
  locked.data = page;
  ASSERT_FP8RT(fp8rt_session_bind_argument(session.get(), 2, &locked));
  std::vector<float> given = w.data;
  for (int step = 0; step < 3; ++step)
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
  EXPECT_EQ(w.data, given) << "the caller's own tensor was copied";
  EXPECT_EQ(argument<float>(2), x.data);
  EXPECT_EQ(argument<int32_t>(3), n.data);
  munmap(page, 4096);
}

TEST_F(SessionTest, EvaluationLeavesNoTraceInTheState) {
  setAll();
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
  auto stateBytes = [&] {
    std::vector<float> all = values<float>(fp8rt_state_tensor(state.get(), "scale"));
    for (float v : values<float>(fp8rt_state_tensor(state.get(), "amax_history")))
      all.push_back(v);
    return all;
  };
  std::vector<float> before = stateBytes();
  Session evaluate = newSession(library, "evaluate", state);
  ASSERT_FP8RT(fp8rt_session_set_argument(evaluate.get(), 0, &x.view));
  ASSERT_FP8RT(fp8rt_session_step(evaluate.get()));
  float sum = 0;
  for (float v : x.data)
    sum += v * before[0];
  EXPECT_EQ(values<float>(fp8rt_session_result(evaluate.get(), 0)), std::vector<float>{sum});
  EXPECT_EQ(stateBytes(), before);
}

TEST_F(SessionTest, KeysAreNumbersAndNames) {
  uint32_t index = 99;
  ASSERT_FP8RT(fp8rt_session_find_argument(session.get(), "2", &index));
  EXPECT_EQ(index, 2u);
  ASSERT_FP8RT(fp8rt_session_find_argument(session.get(), "n", &index));
  EXPECT_EQ(index, 3u);
  ASSERT_FP8RT(fp8rt_session_find_result(session.get(), "loss", &index));
  EXPECT_EQ(index, 2u);
  EXPECT_FP8RT_ERROR(fp8rt_session_find_argument(session.get(), "scale", &index), FP8RT_NOT_FOUND,
                     "no argument 'scale' among 4");
  EXPECT_FP8RT_ERROR(fp8rt_session_find_argument(session.get(), "4", &index), FP8RT_NOT_FOUND,
                     "no argument '4'");
  Session twins = newSession(library, "twins", state);
  EXPECT_FP8RT_ERROR(fp8rt_session_find_argument(twins.get(), "t", &index), FP8RT_NOT_FOUND,
                     "2 arguments have the name 't'");
  // Residuals and state do not count: the user's results keep their numbers.
  Session forward = newSession(library, "forward", state);
  ASSERT_FP8RT(fp8rt_session_find_result(forward.get(), "1", &index));
  EXPECT_EQ(index, 2u);
}

TEST_F(SessionTest, WrongTensorsAreRefused) {
  auto expect = [&](uint32_t index, const DLTensor &tensor, fp8rt_status status, const char *part) {
    EXPECT_FP8RT_ERROR(fp8rt_session_set_argument(session.get(), index, &tensor), status, part);
  };
  expect(0, x.view, FP8RT_MISMATCH, "argument 0 'w' is f32[2,3], the given tensor f32[3]");
  expect(2, m.view, FP8RT_MISMATCH, "argument 2 'x' is f32[3], the given tensor bf16[4]");
  Literal<int32_t> wrongType(kI32, {3}, {1, 2, 3});
  expect(2, wrongType.view, FP8RT_MISMATCH, "given tensor i32[3]");
  expect(4, x.view, FP8RT_INVALID_ARGUMENT, "'scale' belongs to the state");
  expect(6, x.view, FP8RT_INVALID_ARGUMENT, "argument 6 is out of range");
  EXPECT_FP8RT_ERROR(fp8rt_session_bind_argument(session.get(), 0, &w.view), FP8RT_INVALID_ARGUMENT,
                     "written by a step");
  DLTensor odd = x.view;
  std::vector<char> bytes(13);
  odd.data = bytes.data() + 1;
  EXPECT_FP8RT_ERROR(fp8rt_session_bind_argument(session.get(), 2, &odd), FP8RT_INVALID_ARGUMENT,
                     "not aligned");
  // An unsigned tensor will do for a signless integer.
  n.view.dtype.code = kDLUInt;
  set(3, n.view);
}

TEST_F(SessionTest, MissingArgumentsAreNamedOrZero) {
  set(0, w.view);
  set(1, m.view);
  set(3, n.view);
  EXPECT_FP8RT_ERROR(fp8rt_session_step(session.get()), FP8RT_NOT_FOUND,
                     "argument 2 'x' of entry 'main' has no value");
  EXPECT_EQ(fp8rt_session_argument(session.get(), 2), nullptr);
  ASSERT_FP8RT(fp8rt_session_zero_missing(session.get()));
  EXPECT_EQ(argument<float>(2), std::vector<float>(3));
  EXPECT_EQ(argument<float>(0), w.data) << "given ones stay";
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
  Session evaluate = newSession(library, "evaluate", state);
  EXPECT_FP8RT_ERROR(fp8rt_session_zero_missing(evaluate.get()), FP8RT_MISMATCH, "argument 0 'x' is f32[?]");
}

TEST_F(SessionTest, AFailingCallEndsTheSession) {
  Session failing = newSession(library, "failing", state);
  EXPECT_FP8RT_ERROR(fp8rt_session_step(failing.get()), FP8RT_CALL_FAILED,
                     "entry 'failing' failed: it always fails");
  EXPECT_FP8RT_ERROR(fp8rt_session_step(failing.get()), FP8RT_INVALID_ARGUMENT, "an earlier step");
  n.data[0] = -1;
  setAll();
  EXPECT_FP8RT_ERROR(fp8rt_session_step(session.get()), FP8RT_CALL_FAILED, "no memory for result 4");
}

TEST_F(SessionTest, OneResultCanFollowTwoArguments) {
  Session twins = newSession(library, "twins", state);
  Literal<int8_t> one({kDLInt, 8, 1}, {}, {1});
  ASSERT_FP8RT(fp8rt_session_set_argument(twins.get(), 0, &one.view));
  ASSERT_FP8RT(fp8rt_session_set_argument(twins.get(), 1, &one.view));
  for (int step = 0; step < 5; ++step)
    ASSERT_FP8RT(fp8rt_session_step(twins.get()));
  EXPECT_EQ(values<int8_t>(fp8rt_session_result(twins.get(), 0)), std::vector<int8_t>{32});
}

TEST_F(SessionTest, ResidualsCrossByBinding) {
  Session forward = newSession(library, "forward", state);
  Session backward = newSession(library, "backward", State());
  Literal<float> g(kF32, {}, {10});
  ASSERT_FP8RT(fp8rt_session_set_argument(forward.get(), 0, &x.view));
  ASSERT_FP8RT(fp8rt_session_set_argument(backward.get(), 1, &g.view));
  ASSERT_FP8RT(fp8rt_session_step(forward.get()));
  ASSERT_FP8RT(fp8rt_session_bind_argument(backward.get(), 0, fp8rt_session_result(forward.get(), 1)));
  ASSERT_FP8RT(fp8rt_session_step(backward.get()));
  EXPECT_EQ(values<float>(fp8rt_session_result(backward.get(), 0)), (std::vector<float>{10, -30, 5}));
}

TEST_F(SessionTest, CreationChecksEntryAndState) {
  fp8rt_session *out = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_session_create(library.get(), "mian", state.get(), &out), FP8RT_NOT_FOUND,
                     "no entry 'mian'");
  EXPECT_FP8RT_ERROR(fp8rt_session_create(library.get(), "main", nullptr, &out), FP8RT_INVALID_ARGUMENT,
                     "needs a state");
  Library other = loadFixture();
  EXPECT_FP8RT_ERROR(fp8rt_session_create(other.get(), "main", state.get(), &out), FP8RT_INVALID_ARGUMENT,
                     "of another library");
  EXPECT_EQ(out, nullptr);
}

TEST_F(SessionTest, ASessionOutlivesItsLibraryAndState) {
  setAll();
  state.reset();
  library.reset();
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
  Reference reference{w.data, x.data};
  reference.step();
  EXPECT_EQ(result<float>(0), reference.w);
}

} // namespace
