// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions of several ranks, the comparison of their programs, and parts of tensors.

#include "RankSupport.h"

using namespace fp8rt_test;

namespace {

#define RANK_TRY(call)                                                                                       \
  do {                                                                                                       \
    if (call)                                                                                                \
      return std::string(fp8rt_last_error());                                                                \
  } while (false)

struct RankProgram {
  Library library;
  State state;
  Session session;

  fp8rt_status load(const char *path, const char *entry) {
    fp8rt_library *loaded = nullptr;
    fp8rt_state *created = nullptr;
    fp8rt_session *opened = nullptr;
    if (fp8rt_status status = fp8rt_library_load(path, &loaded))
      return status;
    library.reset(loaded);
    if (fp8rt_status status = fp8rt_state_create(loaded, &created))
      return status;
    state.reset(created);
    fp8rt_status status = fp8rt_session_create(loaded, entry, created, &opened);
    session.reset(opened);
    return status;
  }
};

std::string trainRank(fp8rt_communicator &communicator) {
  RankProgram program;
  RANK_TRY(program.load(RANKS_FIXTURE, "main"));
  RANK_TRY(fp8rt_communicator_compare_libraries(&communicator, program.library.get()));
  RANK_TRY(fp8rt_session_set_communicator(program.session.get(), &communicator));
  float w[2] = {1, 2}, x[2] = {static_cast<float>(communicator.rank), -10};
  int64_t shapeOfW[] = {2}, shapeOfX[] = {1, 2};
  DLTensor weights = {w, {kDLCPU, 0}, 1, kF32, shapeOfW, nullptr, 0};
  DLTensor rows = {x, {kDLCPU, 0}, 2, kF32, shapeOfX, nullptr, 0};
  RANK_TRY(fp8rt_session_set_argument(program.session.get(), 0, &weights));
  RANK_TRY(fp8rt_session_set_argument(program.session.get(), 1, &rows));
  RANK_TRY(fp8rt_session_step(program.session.get()));
  auto value = [&](uint32_t index) {
    return static_cast<const float *>(fp8rt_session_argument(program.session.get(), index)->data);
  };
  // The mean of 0, 1 and 2, and of three times -10.
  bool isRight = value(0)[0] == 0 && value(0)[1] == 12 && value(2)[0] == 10;
  return isRight ? "" : "w " + std::to_string(value(0)[0]) + " " + std::to_string(value(0)[1]);
}

TEST(RankSession, StepsReduceOverTheRanks) {
  for (const std::string &text : runThreads(3, trainRank))
    EXPECT_EQ(text, "");
}

TEST(RankSession, AStepThatFailsTellsTheOthers) {
  std::vector<std::string> texts = runThreads(3, [](fp8rt_communicator &communicator) {
    RankProgram program;
    RANK_TRY(program.load(RANKS_FIXTURE, "failing"));
    RANK_TRY(fp8rt_session_set_communicator(program.session.get(), &communicator));
    RANK_TRY(fp8rt_session_step(program.session.get()));
    return std::string();
  });
  EXPECT_EQ(texts[1], "entry 'failing' failed: it fails");
  for (uint32_t rank : {0u, 2u})
    EXPECT_EQ(texts[rank], "entry 'failing' failed: rank 1 failed: entry 'failing' failed: it fails");
}

TEST(RankSession, AnotherProgramIsFoundByItsFirstDifference) {
  std::vector<std::string> texts = runThreads(3, [](fp8rt_communicator &communicator) {
    RankProgram program;
    RANK_TRY(program.load(communicator.rank == 2 ? OTHER_RANKS_FIXTURE : RANKS_FIXTURE, "main"));
    RANK_TRY(fp8rt_communicator_compare_libraries(&communicator, program.library.get()));
    return std::string();
  });
  for (const std::string &text : texts)
    EXPECT_EQ(text, "the ranks run different programs: column 1 (h1/fc, h1/fc2: weight in E4M3) on rank 0, "
                    "column 1 (h1/fc, h1/fc2: weight in E5M2) on rank 2");
}

TEST(RankSession, LinesAreCompared) {
  std::vector<std::string> texts = runThreads(2, [](fp8rt_communicator &communicator) {
    const char *lines[] = {"entry main", "entry evaluate"};
    uint64_t count = communicator.rank == 0 ? 2 : 1;
    RANK_TRY(fp8rt_communicator_compare(&communicator, "the ranks differ", lines, count));
    return std::string();
  });
  for (const std::string &text : texts)
    EXPECT_EQ(text, "the ranks differ: entry evaluate on rank 0, nothing more on rank 1");
}

TEST(RankSession, TensorsAreComparedByTheirElements) {
  std::vector<std::string> texts = runThreads(4, [](fp8rt_communicator &communicator) {
    std::vector<float> a(100, 1), b(100, 2);
    fp8rt_tensors *created = nullptr;
    RANK_TRY(fp8rt_tensors_create(&created));
    Tensors tensors(created);
    int64_t shape[] = {100};
    DLTensor first = {a.data(), {kDLCPU, 0}, 1, kF32, shape, nullptr, 0}, second = first;
    second.data = b.data();
    RANK_TRY(fp8rt_tensors_add(created, "a", &first));
    RANK_TRY(fp8rt_tensors_add(created, "b", &second));
    RANK_TRY(fp8rt_communicator_compare_tensors(&communicator, created));
    if (communicator.rank == 3)
      b[99] = -2;
    RANK_TRY(fp8rt_communicator_compare_tensors(&communicator, created));
    return std::string();
  });
  for (const std::string &text : texts) {
    EXPECT_EQ(text.rfind("the ranks have different tensors: tensor 'b' (f32[100], hash ", 0), 0u) << text;
    EXPECT_NE(text.find(" on rank 3"), std::string::npos) << text;
  }
}

/// The values of a tensor of two columns.
struct Rows {
  explicit Rows(std::vector<float> values)
      : values(std::move(values)), shape{int64_t(this->values.size() / 2), 2} {}
  DLTensor view() { return {values.data(), {kDLCPU, 0}, 2, kF32, shape, nullptr, 0}; }
  std::vector<float> values;
  int64_t shape[2];
};

TEST(RankSession, ArgumentsAreCutAndResultsAreGathered) {
  for (const std::string &text : runThreads(3, [](fp8rt_communicator &communicator) {
         RankProgram program;
         RANK_TRY(program.load(RANKS_FIXTURE, "main"));
         RANK_TRY(fp8rt_session_set_communicator(program.session.get(), &communicator));
         Rows x({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}); // two rows for each rank
         DLTensor view = x.view();
         RANK_TRY(fp8rt_session_set_whole_argument(program.session.get(), 1, &view));
         RANK_TRY(fp8rt_session_zero_missing(program.session.get()));
         RANK_TRY(fp8rt_session_compare(program.session.get()));
         RANK_TRY(fp8rt_session_step(program.session.get()));
         Tensors tensors = newTensors();
         RANK_TRY(fp8rt_session_add_whole_result(program.session.get(), 2, "own", tensors.get()));
         const DLTensor *own = fp8rt_tensors_find(tensors.get(), "own");
         const float *sums = static_cast<const float *>(own->data);
         std::string text = std::to_string(own->shape[0]) + ":";
         for (int i = 0; i < 6; ++i)
           text += " " + std::to_string(static_cast<int>(sums[i]));
         return text;
       }))
    EXPECT_EQ(text, "6: 4 6 12 14 20 22");
}

TEST(RankSession, WhatCannotBeDividedIsRefused) {
  for (const std::string &text : runThreads(2, [](fp8rt_communicator &communicator) {
         RankProgram program;
         RANK_TRY(program.load(RANKS_FIXTURE, "main"));
         RANK_TRY(fp8rt_session_set_communicator(program.session.get(), &communicator));
         Rows x({1, 2, 3, 4, 5, 6});
         DLTensor view = x.view();
         RANK_TRY(fp8rt_session_set_whole_argument(program.session.get(), 1, &view));
         return std::string();
       }))
    EXPECT_EQ(text, "dimension 0 is 3, which is not divisible by 2 ranks");
}

TEST(RankSession, ArgumentsThatDifferAreNamed) {
  for (const std::string &text : runThreads(2, [](fp8rt_communicator &communicator) {
         RankProgram program;
         RANK_TRY(program.load(RANKS_FIXTURE, "main"));
         RANK_TRY(fp8rt_session_set_communicator(program.session.get(), &communicator));
         float w[] = {1, static_cast<float>(communicator.rank)};
         int64_t shape[] = {2};
         DLTensor view = {w, {kDLCPU, 0}, 1, kF32, shape, nullptr, 0};
         RANK_TRY(fp8rt_session_set_argument(program.session.get(), 0, &view));
         RANK_TRY(fp8rt_session_compare(program.session.get()));
         return std::string();
       }))
    EXPECT_EQ(text.rfind("the ranks have different values: tensor 'w' (f32[2], hash ", 0), 0u) << text;
}

} // namespace
