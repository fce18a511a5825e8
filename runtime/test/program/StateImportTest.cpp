// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States of other programs: columns are found by site and tensor, and every difference is reported. The
// fixture's columns are 'fc' input and 'fc' weight, both E4M3, its history has 3 rows.

#include "TestSupport.h"

#include <cmath>

using namespace fp8rt_test;

namespace {

using Values = std::vector<float>;
using Lines = std::vector<std::string>;

std::string column(const std::string &sites, const std::string &tensor, const std::string &format = "E4M3") {
  return R"({"sites":[)" + sites + R"(],"tensor":")" + tensor + R"(","format":")" + format +
         R"(","fp8_max":)" + (format == "E4M3" ? "448.0" : "57344.0") + "}";
}

/// A state of another program.
struct Saved {
  std::string columns;
  Values scale, history;
  std::string hash = "other";
};

class StateImportTest : public ::testing::Test {
protected:
  void SetUp() override {
    library = loadFixture();
    state = newState(library);
  }

  Tensors tensorsOf(const Saved &saved) {
    auto columns = static_cast<int64_t>(saved.scale.size());
    scale = std::make_unique<Literal<float>>(kF32, std::vector<int64_t>{columns}, saved.scale);
    history = std::make_unique<Literal<float>>(
        kF32, std::vector<int64_t>{static_cast<int64_t>(saved.history.size()) / columns, columns},
        saved.history);
    Tensors tensors = newTensors();
    fp8rt_tensors_add(tensors.get(), "scale", &scale->view);
    fp8rt_tensors_add(tensors.get(), "amax_history", &history->view);
    fp8rt_tensors_set_metadata(tensors.get(), "version", "1");
    fp8rt_tensors_set_metadata(tensors.get(), "layout_hash", saved.hash.c_str());
    fp8rt_tensors_set_metadata(tensors.get(), "columns", ("[" + saved.columns + "]").c_str());
    return tensors;
  }

  fp8rt_status import(const Tensors &tensors, bool strict = false, fp8rt_history how = FP8RT_HISTORY_EXACT) {
    fp8rt_import_options options = {};
    options.history = how;
    options.strict = strict;
    options.report = [](void *lines, const char *difference) {
      static_cast<Lines *>(lines)->push_back(difference);
    };
    options.report_context = &reported;
    reported.clear();
    return fp8rt_state_import_matching(state.get(), tensors.get(), &options);
  }
  Values scales() { return values<float>(fp8rt_state_tensor(state.get(), "scale")); }
  Values histories() { return values<float>(fp8rt_state_tensor(state.get(), "amax_history")); }

  Library library;
  State state;
  std::unique_ptr<Literal<float>> scale, history;
  Lines reported;
};

TEST_F(StateImportTest, ColumnsInAnotherOrderWithStrangers) {
  Tensors tensors = tensorsOf(
      {column(R"("head")", "input") + "," + column(R"("fc")", "weight") + "," + column(R"("fc")", "input"),
       {7, 8, 9},
       {0, 1, 2, 3, 4, 5, 6, 7, 8}});
  ASSERT_FP8RT(import(tensors));
  EXPECT_EQ(scales(), (Values{9, 8}));
  EXPECT_EQ(histories(), (Values{2, 1, 5, 4, 8, 7}));
  EXPECT_EQ(reported, (Lines{"column 'head' input E4M3 of the file: not in the program, it is left out"}));
}

TEST_F(StateImportTest, AColumnThatIsMissingStartsAnew) {
  Tensors tensors = tensorsOf({column(R"("fc")", "weight"), {8}, {1, 4, 7}});
  ASSERT_FP8RT(import(tensors));
  EXPECT_EQ(scales(), (Values{1, 8}));
  EXPECT_EQ(histories(), (Values{0, 1, 0, 4, 0, 7}));
  EXPECT_EQ(reported, (Lines{"column 'fc' input: not in the file, it starts anew"}));
}

TEST_F(StateImportTest, AnotherFormatChangesTheScale) {
  Tensors tensors = tensorsOf(
      {column(R"("fc")", "input", "E5M2") + "," + column(R"("fc")", "weight"), {256, 8}, {1, 2, 3, 4, 5, 6}});
  ASSERT_FP8RT(import(tensors));
  EXPECT_EQ(scales(), (Values{2, 8})) << "448 / 57344 = 1 / 128";
  EXPECT_EQ(histories(), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(reported, (Lines{"column 'fc' input: was E5M2, is E4M3: its scale is adapted"}));
}

TEST_F(StateImportTest, TheSameFormatComesFirst) {
  Tensors tensors = tensorsOf({column(R"("fc")", "input", "E5M2") + "," + column(R"("fc")", "input") + "," +
                                   column(R"("fc")", "weight"),
                               {256, 3, 8},
                               {1, 2, 3, 4, 5, 6, 7, 8, 9}});
  ASSERT_FP8RT(import(tensors));
  EXPECT_EQ(scales(), (Values{3, 8}));
  EXPECT_EQ(reported, (Lines{"column 'fc' input E5M2 of the file: not in the program, it is left out"}));
}

TEST_F(StateImportTest, SitesThatAreRenamed) {
  Tensors tensors = tensorsOf({column(R"("old/fc","gate")", "input") + "," + column(R"("old/fc")", "weight"),
                               {5, 6},
                               {1, 2, 3, 4, 5, 6}});
  const char *from[] = {"old/fc"}, *to[] = {"fc"};
  ASSERT_FP8RT(fp8rt_tensors_rename_sites(tensors.get(), from, to, 1));
  ASSERT_FP8RT(import(tensors));
  EXPECT_EQ(scales(), (Values{5, 6}));
  EXPECT_EQ(reported, (Lines{"column 'fc' input: its sites are not the same in the file"}));
}

TEST_F(StateImportTest, ARenamedStateOfTheSameSitesIsTheProgramsOwn) {
  Tensors tensors = tensorsOf(
      {column(R"("a/fc")", "input") + "," + column(R"("a/fc")", "weight"), {5, 6}, {1, 2, 3, 4, 5, 6}});
  const char *from[] = {"a/fc"}, *to[] = {"fc"};
  ASSERT_FP8RT(fp8rt_tensors_rename_sites(tensors.get(), from, to, 1));
  ASSERT_FP8RT(import(tensors, /*strict=*/true));
  EXPECT_EQ(scales(), (Values{5, 6}));
  EXPECT_EQ(reported, Lines());
}

TEST_F(StateImportTest, RenamesApplyToWholeComponents) {
  Tensors tensors = tensorsOf({column(R"("h1/fc","h10/fc")", "input"), {5}, {1, 2, 3}});
  Literal<float> carried(kF32, {1}, {1});
  fp8rt_tensors_add(tensors.get(), "carry.h1.w", &carried.view);
  fp8rt_tensors_add(tensors.get(), "carry.h10.w", &carried.view);
  const char *from[] = {"h1"}, *to[] = {"layers/1"};
  ASSERT_FP8RT(fp8rt_tensors_rename_sites(tensors.get(), from, to, 1));
  EXPECT_NE(std::string(fp8rt_tensors_metadata(tensors.get(), "columns")).find(R"(["layers/1/fc","h10/fc"])"),
            std::string::npos);
  EXPECT_NE(fp8rt_tensors_find(tensors.get(), "carry.layers/1.w"), nullptr);
  EXPECT_NE(fp8rt_tensors_find(tensors.get(), "carry.h10.w"), nullptr);
  EXPECT_EQ(fp8rt_tensors_find(tensors.get(), "carry.h1.w"), nullptr);
}

TEST_F(StateImportTest, RenamesThatDoNotFit) {
  Tensors tensors = tensorsOf({column(R"("fc")", "input"), {5}, {1, 2, 3}});
  const char *from[] = {"fd"}, *to[] = {"fc"};
  EXPECT_FP8RT_ERROR(fp8rt_tensors_rename_sites(tensors.get(), from, to, 1), FP8RT_NOT_FOUND,
                     "there is no site 'fd' to rename");
  Literal<float> carried(kF32, {1}, {1});
  fp8rt_tensors_add(tensors.get(), "carry.a", &carried.view);
  fp8rt_tensors_add(tensors.get(), "carry.b", &carried.view);
  const char *a[] = {"a"}, *b[] = {"b"};
  EXPECT_FP8RT_ERROR(fp8rt_tensors_rename_sites(tensors.get(), a, b, 1), FP8RT_MISMATCH,
                     "two tensors would be called 'carry.b'");
  EXPECT_NE(fp8rt_tensors_find(tensors.get(), "carry.a"), nullptr);
  EXPECT_EQ(fp8rt_tensors_rename_sites(tensors.get(), nullptr, to, 1), FP8RT_INVALID_ARGUMENT);
  EXPECT_EQ(fp8rt_tensors_rename_sites(nullptr, from, to, 1), FP8RT_INVALID_ARGUMENT);
}

TEST_F(StateImportTest, OneColumnForSeveral) {
  // The fixture has one column for 'fc' input; here the file's two are both of it, with other sites beside
  // it.
  Tensors tensors = tensorsOf({column(R"("fc","q")", "input") + "," + column(R"("fc","k")", "input") + "," +
                                   column(R"("fc")", "weight"),
                               {4, 2, 8},
                               {1, 5, 0, 6, 2, 0, 3, NAN, 0}});
  ASSERT_FP8RT(import(tensors));
  EXPECT_EQ(scales(), (Values{2, 8}));
  EXPECT_EQ(histories(), (Values{5, 0, 6, 0, 3, 0}));
  EXPECT_EQ(reported,
            (Lines{"column 'fc' input: the file has 2 columns for its sites: their largest amaxes and "
                   "smallest scale"}));
}

TEST_F(StateImportTest, HistoriesOfOtherColumnsAndLength) {
  Tensors tensors = tensorsOf({column(R"("fc")", "weight") + "," + column(R"("fc")", "input"),
                               {8, 9},
                               {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}});
  EXPECT_FP8RT_ERROR(import(tensors), FP8RT_MISMATCH, "its 'amax_history' has 5 rows, the program's 3");
  ASSERT_FP8RT(import(tensors, false, FP8RT_HISTORY_NEWEST));
  EXPECT_EQ(histories(), (Values{2, 1, 8, 7, 10, 9}));
  EXPECT_EQ(reported, (Lines{"the history has 5 rows, the program's 3: its newest are taken over"}));
}

TEST_F(StateImportTest, StrictMeansAnyDifference) {
  Saved saved{column(R"("fc")", "weight"), {8}, {1, 4, 7}};
  EXPECT_FP8RT_ERROR(
      import(tensorsOf(saved), /*strict=*/true), FP8RT_MISMATCH,
      "its layout hash 'other' is not the program's 'abc123': it was saved by a program with other "
      "FP8 sites or options; column 'fc' input: not in the file, it starts anew");
  EXPECT_EQ(scales(), (Values{1, 1}));
  EXPECT_EQ(reported, Lines());
}

TEST_F(StateImportTest, StatesOfNoUse) {
  auto refused = [&](const Saved &saved, fp8rt_status status, const char *text) {
    EXPECT_FP8RT_ERROR(import(tensorsOf(saved)), status, text);
    EXPECT_EQ(scales(), (Values{1, 1}));
  };
  refused({column(R"("q")", "input"), {8}, {1, 4, 7}}, FP8RT_MISMATCH, "it has no site of this program");
  refused({column(R"("fc")", "input") + "," + column(R"("fc")", "weight"), {8, 8}, {1, 2, 3, 4, 5, 6}},
          FP8RT_MISMATCH,
          "its layout hash 'other' is not the program's 'abc123', and its columns are: one of the two");
  refused({column(R"("fc")", "input"), {8, 8}, {1, 2, 3, 4, 5, 6}}, FP8RT_MISMATCH,
          "tensor 'scale' is f32[2], the program has f32[1]");
  refused({"{", {8}, {1, 2, 3}}, FP8RT_CORRUPT, "'columns' is not a JSON list");
  refused({"{}", {8}, {1, 2, 3}}, FP8RT_CORRUPT, "has a column without sites");
  refused({R"({"sites":[]})", {8}, {1, 2, 3}}, FP8RT_CORRUPT, "sites are not a list of names");
  refused({R"({"sites":["a"],"tensor":1})", {8}, {1, 2, 3}}, FP8RT_CORRUPT, "tensor is not a string");
  refused({R"({"sites":["a"],"tensor":"input","format":"E4M3","fp8_max":0})", {8}, {1, 2, 3}}, FP8RT_CORRUPT,
          "fp8_max is not a positive number");
}

TEST_F(StateImportTest, AStrangeTensorIsLeftOut) {
  Tensors tensors = newTensors();
  ASSERT_FP8RT(fp8rt_state_export(state.get(), tensors.get()));
  Literal<float> other(kF32, {1}, {1});
  fp8rt_tensors_add(tensors.get(), "loss_scale", &other.view);
  ASSERT_FP8RT(import(tensors));
  EXPECT_EQ(reported, (Lines{"tensor 'loss_scale' is not part of the program's state"}));
}

} // namespace
