// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State and carried arguments in files: nothing is lost, and nothing that does
// not fit gets in.

#include "TestSupport.h"

#include <functional>

using namespace fp8rt_test;

namespace {

class StateTest : public WithFolder {
protected:
  void SetUp() override {
    WithFolder::SetUp();
    library = loadFixture();
    ASSERT_TRUE(library);
  }

  /// A program at its beginning.
  struct Run {
    State state;
    Session session;
  };
  Run begin() {
    Run run;
    run.state = newState(library);
    run.session = newSession(library, "main", run.state);
    Literal<float> w(kF32, {2, 3}, {1, -2, 3, -4, 5, -6});
    Literal<uint16_t> m(kBF16, {4}, {10, 20, 30, 40});
    Literal<float> x(kF32, {3}, {0.5f, -1.5f, 0.25f});
    Literal<int32_t> n(kI32, {}, {4});
    const DLTensor *all[] = {&w.view, &m.view, &x.view, &n.view};
    for (uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(fp8rt_session_set_argument(run.session.get(), i, all[i]), FP8RT_OK);
    return run;
  }
  void step(Run &run, int times) {
    for (int i = 0; i < times; ++i)
      ASSERT_FP8RT(fp8rt_session_step(run.session.get()));
  }
  Tensors exported(const Run &run) {
    Tensors tensors = newTensors();
    EXPECT_EQ(fp8rt_state_export(run.state.get(), tensors.get()), FP8RT_OK);
    EXPECT_EQ(fp8rt_session_export_carried(run.session.get(), tensors.get()), FP8RT_OK);
    return tensors;
  }
  void save(const Run &run, const std::string &name) {
    ASSERT_FP8RT(fp8rt_tensors_write(exported(run).get(), path(name).c_str()));
  }
  void load(Run &run, const std::string &name) {
    Tensors tensors = readTensors(path(name));
    ASSERT_FP8RT(fp8rt_state_import(run.state.get(), tensors.get()));
    ASSERT_FP8RT(fp8rt_session_import_carried(run.session.get(), tensors.get()));
  }
  template <typename T>
  std::vector<T> saved(const Tensors &tensors, const char *name) {
    return values<T>(fp8rt_tensors_find(tensors.get(), name));
  }
  void expectSame(const Tensors &a, const Tensors &b) {
    ASSERT_EQ(fp8rt_tensors_count(a.get()), fp8rt_tensors_count(b.get()));
    for (const char *name : {"scale", "amax_history", "carry.w"})
      EXPECT_EQ(saved<uint32_t>(a, name), saved<uint32_t>(b, name)) << name;
    EXPECT_EQ(saved<uint16_t>(a, "carry.m"), saved<uint16_t>(b, "carry.m"));
  }

  Library library;
};

TEST_F(StateTest, BeginsAsTheManifestSays) {
  Run run = begin();
  EXPECT_EQ(values<float>(fp8rt_state_tensor(run.state.get(), "scale")), (std::vector<float>{1, 1}));
  EXPECT_EQ(values<float>(fp8rt_state_tensor(run.state.get(), "amax_history")), std::vector<float>(6));
  EXPECT_EQ(fp8rt_state_tensor(run.state.get(), "other"), nullptr);
}

TEST_F(StateTest, TenStepsAreFourAndSix) {
  Run straight = begin();
  step(straight, 10);
  Run first = begin();
  step(first, 4);
  save(first, "s");
  Run second = begin();
  load(second, "s");
  step(second, 6);
  expectSame(exported(straight), exported(second));
}

TEST_F(StateTest, TheFileIsAsDocumented) {
  Run run = begin();
  step(run, 1);
  save(run, "s");
  Tensors tensors = readTensors(path("s"));
  std::vector<std::string> names;
  for (uint64_t i = 0; i < fp8rt_tensors_count(tensors.get()); ++i)
    names.push_back(fp8rt_tensors_name(tensors.get(), i));
  EXPECT_EQ(names, (std::vector<std::string>{"amax_history", "carry.m", "carry.w", "scale"}));
  auto metadata = [&](const char *key) { return std::string(fp8rt_tensors_metadata(tensors.get(), key)); };
  EXPECT_EQ(metadata("version"), "1");
  EXPECT_EQ(metadata("fp8_checksum").find("crc32c:"), 0u);
  EXPECT_EQ(metadata("layout_hash"), "abc123");
  EXPECT_EQ(metadata("columns").find(R"([{"format":"E4M3","fp8_max":448.0)"), 0u);
  EXPECT_EQ(saved<float>(tensors, "scale")[0], 448.0f / 1.5f);
}

TEST_F(StateTest, CarriedTwinsAreSavedByNumber) {
  State state = newState(library);
  Session twins = newSession(library, "twins", state);
  ASSERT_FP8RT(fp8rt_session_zero_missing(twins.get()));
  Tensors tensors = newTensors();
  ASSERT_FP8RT(fp8rt_session_export_carried(twins.get(), tensors.get()));
  EXPECT_STREQ(fp8rt_tensors_name(tensors.get(), 0), "carry.0");
  EXPECT_STREQ(fp8rt_tensors_name(tensors.get(), 1), "carry.1");
}

/// Files that differ from a good one in one thing; none may change anything.
class WrongStateTest : public StateTest {
protected:
  using Change = std::function<void(fp8rt_tensors *, const std::string &name, const DLTensor *)>;

  /// Copies a good state tensor by tensor through `change`.
  Tensors changed(const Change &change) {
    good = exported(run);
    Tensors tensors = newTensors();
    for (const char *key : {"version", "layout_hash", "columns"})
      fp8rt_tensors_set_metadata(tensors.get(), key, fp8rt_tensors_metadata(good.get(), key));
    for (uint64_t i = 0; i < fp8rt_tensors_count(good.get()); ++i) {
      const char *name = fp8rt_tensors_name(good.get(), i);
      change(tensors.get(), name, fp8rt_tensors_find(good.get(), name));
    }
    return tensors;
  }
  static void copy(fp8rt_tensors *to, const std::string &name, const DLTensor *tensor) {
    EXPECT_EQ(fp8rt_tensors_add(to, name.c_str(), tensor), FP8RT_OK);
  }
  /// All but that tensor, instead of which there may be another.
  Tensors replaced(const std::string &wanted, const DLTensor *other) {
    return changed([&](auto *to, auto &name, auto *tensor) {
      if (name != wanted)
        copy(to, name, tensor);
      else if (other)
        copy(to, name, other);
    });
  }

  void expectStateError(const Tensors &tensors, fp8rt_status status, const char *part) {
    Run victim = begin();
    step(victim, 2);
    std::vector<float> before = values<float>(fp8rt_state_tensor(victim.state.get(), "amax_history"));
    EXPECT_FP8RT_ERROR(fp8rt_state_import(victim.state.get(), tensors.get()), status, part);
    EXPECT_EQ(values<float>(fp8rt_state_tensor(victim.state.get(), "amax_history")), before);
  }

  void SetUp() override {
    StateTest::SetUp();
    run = begin();
  }

  Run run;
  Tensors good;
  Literal<float> three{kF32, {3}, {1, 2, 3}};
};

TEST_F(WrongStateTest, Metadata) {
  Tensors empty = newTensors();
  expectStateError(empty, FP8RT_CORRUPT, "metadata has no version");
  Tensors tensors = changed(copy);
  fp8rt_tensors_set_metadata(tensors.get(), "version", "9");
  expectStateError(tensors, FP8RT_UNSUPPORTED, "version '9'");
  tensors = changed(copy);
  fp8rt_tensors_set_metadata(tensors.get(), "layout_hash", "other");
  expectStateError(tensors, FP8RT_MISMATCH, "layout hash 'other' is not the program's 'abc123'");
}

TEST_F(WrongStateTest, StateTensors) {
  expectStateError(replaced("scale", nullptr), FP8RT_NOT_FOUND, "no tensor 'scale'");
  expectStateError(replaced("scale", &three.view), FP8RT_MISMATCH,
                   "tensor 'scale' is f32[3], the program has f32[2]");
  Literal<int32_t> integers(kI32, {2}, {1, 2});
  expectStateError(replaced("scale", &integers.view), FP8RT_MISMATCH, "is i32[2]");
  Tensors stranger = changed(copy);
  copy(stranger.get(), "loss_scale", &three.view);
  expectStateError(stranger, FP8RT_MISMATCH, "'loss_scale' is not part of the program's state");
}

/// A state saved with another amax_history_len.
class HistoryLengthTest : public WrongStateTest {
protected:
  /// The program's history after an import of one with these rows, two columns each.
  std::vector<float> imported(const std::vector<float> &rows, fp8rt_history history) {
    Run victim = begin();
    step(victim, 2);
    Literal<float> other(kF32, {static_cast<int64_t>(rows.size()) / 2, 2}, rows);
    Tensors tensors = replaced("amax_history", &other.view);
    EXPECT_EQ(fp8rt_state_import_history(victim.state.get(), tensors.get(), history), FP8RT_OK);
    return values<float>(fp8rt_state_tensor(victim.state.get(), "amax_history"));
  }
  using Rows = std::vector<float>;
  Rows longer{9, 90, 1, 10, 2, 20, 3, 30, 4, 40}; // staged, then steps 1 to 4
};

TEST_F(HistoryLengthTest, OfALongerHistory) {
  EXPECT_EQ(imported(longer, FP8RT_HISTORY_NEWEST), (Rows{9, 90, 3, 30, 4, 40}));
  EXPECT_EQ(imported(longer, FP8RT_HISTORY_OLDEST), (Rows{9, 90, 1, 10, 2, 20}));
}

TEST_F(HistoryLengthTest, OfAShorterHistory) {
  EXPECT_EQ(imported({9, 90, 1, 10}, FP8RT_HISTORY_NEWEST), (Rows{9, 90, 0, 0, 1, 10}));
  EXPECT_EQ(imported({9, 90, 1, 10}, FP8RT_HISTORY_OLDEST), (Rows{9, 90, 1, 10, 0, 0}));
  EXPECT_EQ(imported({9, 90}, FP8RT_HISTORY_NEWEST), (Rows{9, 90, 0, 0, 0, 0}));
}

TEST_F(HistoryLengthTest, OfTheSameLengthNothingChanges) {
  for (fp8rt_history history : {FP8RT_HISTORY_EXACT, FP8RT_HISTORY_NEWEST, FP8RT_HISTORY_OLDEST})
    EXPECT_EQ(imported({9, 90, 1, 10, 2, 20}, history), (Rows{9, 90, 1, 10, 2, 20}));
}

TEST_F(HistoryLengthTest, NothingElseMayDiffer) {
  Literal<float> other(kF32, {5, 2}, longer);
  expectStateError(replaced("amax_history", &other.view), FP8RT_MISMATCH,
                   "its 'amax_history' has 5 rows, the program's 3: take over its newest rows or its oldest");
  Run victim = begin();
  auto expectRefused = [&](const DLTensor *history) {
    Tensors tensors = replaced("amax_history", history);
    EXPECT_FP8RT_ERROR(fp8rt_state_import_history(victim.state.get(), tensors.get(), FP8RT_HISTORY_NEWEST),
                       FP8RT_MISMATCH, "tensor 'amax_history' is");
  };
  Literal<float> columns(kF32, {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), rank(kF32, {2}, {1, 2});
  Literal<int32_t> integers(kI32, {5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  expectRefused(&columns.view);
  expectRefused(&rank.view);
  expectRefused(&integers.view);
}

TEST_F(WrongStateTest, CarriedTensors) {
  Run victim = begin();
  step(victim, 2);
  Tensors before = exported(victim);
  Tensors missing = replaced("carry.w", nullptr);
  EXPECT_FP8RT_ERROR(fp8rt_session_import_carried(victim.session.get(), missing.get()), FP8RT_NOT_FOUND,
                     "no tensor 'carry.w'");
  Tensors wrong = replaced("carry.w", &three.view);
  EXPECT_FP8RT_ERROR(fp8rt_session_import_carried(victim.session.get(), wrong.get()), FP8RT_MISMATCH,
                     "tensor 'carry.w': argument 0 'w' is f32[2,3]");
  EXPECT_EQ(values<uint16_t>(fp8rt_session_argument(victim.session.get(), 1)),
            (std::vector<uint16_t>{12, 22, 32, 42}))
      << "carry.m fits, but nothing is taken of a wrong file";
}

TEST_F(WrongStateTest, ErrorsStartWithTheFile) {
  ASSERT_FP8RT(fp8rt_tensors_write(newTensors().get(), path("s").c_str()));
  Tensors tensors = readTensors(path("s"));
  EXPECT_FP8RT_ERROR(fp8rt_state_import(run.state.get(), tensors.get()), FP8RT_CORRUPT,
                     path("s") + ": not a state file");
}

} // namespace
