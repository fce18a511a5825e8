// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts of weights in the state: sessions never compute with the cast of another weight, and cast no weight
// twice without need.

#include "TestSupport.h"

#include <cmath>

using namespace fp8rt_test;

namespace {

class KeptCastsTest : public ::testing::Test {
protected:
  void SetUp() override {
    fp8rt_library *loaded = nullptr;
    ASSERT_FP8RT(fp8rt_library_load(CASTS_FIXTURE, &loaded));
    library.reset(loaded);
    state = newState(library);
    train = newSession(library, "main", state);
    set(train, {1, 2});
  }

  static void set(const Session &session, std::vector<float> w) {
    Literal<float> tensor(kF32, {2}, std::move(w));
    ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), 0, &tensor.view));
  }
  static void bind(const Session &session, const Session &owner) {
    const DLTensor *w = fp8rt_session_argument_in_place(owner.get(), 0);
    ASSERT_FP8RT(fp8rt_session_bind_argument(session.get(), 0, w));
  }
  /// Runs a step; returns the sum of the cast that it read.
  static float step(const Session &session, uint32_t result = 0) {
    EXPECT_EQ(fp8rt_session_step(session.get()), FP8RT_OK) << fp8rt_last_error();
    return values<float>(fp8rt_session_result(session.get(), result))[0];
  }
  float trainStep() { return step(train, 1); }
  int casts() { return values<int>(fp8rt_state_tensor(state.get(), "casts"))[0]; }

  Library library;
  State state;
  Session train;
};

TEST_F(KeptCastsTest, TheFirstStepCastsAndTrainingGoesOn) {
  EXPECT_TRUE(std::isnan(values<float>(fp8rt_state_tensor(state.get(), "data"))[0]));
  EXPECT_EQ(trainStep(), 6);
  EXPECT_EQ(trainStep(), 2);
  EXPECT_EQ(trainStep(), -2);
  EXPECT_EQ(casts(), 1);
}

TEST_F(KeptCastsTest, AnotherWeightIsCast) {
  EXPECT_EQ(trainStep(), 6);
  set(train, {10, 10});
  EXPECT_EQ(trainStep(), 40);
  EXPECT_EQ(trainStep(), 36);
  EXPECT_EQ(casts(), 2);
}

TEST_F(KeptCastsTest, InferenceCastsOnce) {
  Session evaluate = newSession(library, "evaluate", state);
  set(evaluate, {3, 4});
  EXPECT_EQ(step(evaluate), 14);
  EXPECT_EQ(step(evaluate), 14);
  EXPECT_EQ(casts(), 1);
}

TEST_F(KeptCastsTest, EvaluationOfOtherWeightsDoesNotDisturbTraining) {
  Session evaluate = newSession(library, "evaluate", state);
  set(evaluate, {5, 5});
  EXPECT_EQ(trainStep(), 6);
  EXPECT_EQ(step(evaluate), 20);
  EXPECT_EQ(trainStep(), 2);
  EXPECT_EQ(step(evaluate), 20);
  EXPECT_EQ(casts(), 4);
}

TEST_F(KeptCastsTest, EvaluationInPlaceReadsWhatTrainingCast) {
  Session evaluate = newSession(library, "evaluate", state);
  bind(evaluate, train);
  for (float expected : {6.0f, 2.0f, -2.0f}) {
    EXPECT_EQ(step(evaluate), expected);
    EXPECT_EQ(trainStep(), expected);
  }
  EXPECT_EQ(casts(), 1);
}

TEST_F(KeptCastsTest, AStepThatChangesTheWeightWithoutACastIsNoticed) {
  Session apply = newSession(library, "apply", state), evaluate = newSession(library, "evaluate", state);
  set(apply, {0, 1});
  bind(evaluate, apply);
  EXPECT_EQ(step(evaluate), 2);
  EXPECT_EQ(step(evaluate), 2); // microbatches
  ASSERT_FP8RT(fp8rt_session_step(apply.get()));
  EXPECT_EQ(step(evaluate), 22);
  EXPECT_EQ(casts(), 2);
}

TEST_F(KeptCastsTest, MissingWeightsAreZero) {
  Session evaluate = newSession(library, "evaluate", state);
  ASSERT_FP8RT(fp8rt_session_zero_missing(evaluate.get()));
  EXPECT_EQ(step(evaluate), 0);
}

TEST_F(KeptCastsTest, CastsAreNotSavedAndMadeAgainAfterLoading) {
  EXPECT_EQ(trainStep(), 6);
  Tensors tensors = newTensors();
  ASSERT_FP8RT(fp8rt_state_export(state.get(), tensors.get()));
  EXPECT_EQ(fp8rt_tensors_find(tensors.get(), "data"), nullptr);
  EXPECT_NE(fp8rt_tensors_find(tensors.get(), "casts"), nullptr);
  ASSERT_FP8RT(fp8rt_state_import(state.get(), tensors.get()));
  EXPECT_EQ(trainStep(), 2);
  EXPECT_EQ(casts(), 2);
}

TEST_F(KeptCastsTest, PreparedCallsWithAStateAreRefused) {
  fp8rt_prepared *prepared = nullptr;
  EXPECT_FP8RT_ERROR(
      fp8rt_prepare(library.get(), "main", state.get(), nullptr, 2, nullptr, 3, &prepared), FP8RT_UNSUPPORTED,
      "entry 'main': it keeps casts of its arguments in the state, which a session makes: use one");
}

} // namespace
