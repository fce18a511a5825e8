// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints: damaged ones are noticed, the right ones are kept, and errors of the thread that writes come
// out.

#include "../../src/core/Checksum.h"
#include "TestSupport.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

using namespace fp8rt_test;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(ChecksumTest, IsCrc32c) {
  // Values of RFC 3720, B.4.
  auto text = [](const std::string &data) {
    fp8rt::Checksum checksum;
    checksum.add(data.data(), data.size());
    return checksum.text();
  };
  EXPECT_EQ(text(""), "00000000");
  EXPECT_EQ(text("123456789"), "e3069283");
  EXPECT_EQ(text(std::string(32, '\0')), "8a9136aa");
  EXPECT_EQ(text(std::string(32, '\xff')), "62a8ab43");
}

TEST(ChecksumTest, ByPiecesAndByTable) {
  uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::string data(1000, '\0');
  for (char &c : data)
    c = static_cast<char>(random());
  fp8rt::Checksum whole, pieces;
  whole.add(data.data(), data.size());
  for (size_t at = 0; at < data.size();) {
    size_t count = std::min<size_t>(random() % 30, data.size() - at);
    pieces.add(data.data() + at, count);
    at += count;
  }
  EXPECT_EQ(whole.text(), pieces.text());
  uint32_t byTable = ~fp8rt::crc32cByTable(0xffffffff, data.data(), data.size());
  char digits[9];
  std::snprintf(digits, sizeof(digits), "%08x", byTable);
  EXPECT_EQ(whole.text(), digits);
}

class CheckpointsTest : public WithFolder {
protected:
  /// A state whose scales are all `value`.
  Tensors stateOf(float value) {
    Library library = loadFixture();
    State state = newState(library);
    Tensors initial = newTensors(), tensors = newTensors();
    EXPECT_EQ(fp8rt_state_export(state.get(), initial.get()), FP8RT_OK);
    scale.emplace_back(
        std::make_unique<Literal<float>>(kF32, std::vector<int64_t>{2}, std::vector<float>{value, value}));
    EXPECT_EQ(fp8rt_tensors_add(tensors.get(), "scale", &scale.back()->view), FP8RT_OK);
    history.emplace_back(
        std::make_unique<Literal<float>>(kF32, std::vector<int64_t>{3, 2}, std::vector<float>(6)));
    EXPECT_EQ(fp8rt_tensors_add(tensors.get(), "amax_history", &history.back()->view), FP8RT_OK);
    for (const char *key : {"version", "layout_hash", "columns", "fp8_checksum"})
      fp8rt_tensors_set_metadata(tensors.get(), key, fp8rt_tensors_metadata(initial.get(), key));
    return tensors;
  }
  float scaleIn(const std::string &name) {
    Tensors tensors = readTensors(path(name));
    return tensors ? values<float>(fp8rt_tensors_find(tensors.get(), "scale")).at(0) : -1;
  }
  std::vector<std::string> sorted() {
    std::vector<std::string> names = files();
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Saves a checkpoint for each step, in which the scales are the step.
  void save(uint32_t keepLast, int64_t present, std::vector<uint64_t> steps) {
    auto checkpoints = make<Checkpoints>(
        [&](auto out) { return fp8rt_checkpoints_create(path("s.st").c_str(), keepLast, present, out); });
    for (uint64_t step : steps)
      ASSERT_FP8RT(fp8rt_checkpoints_save(checkpoints.get(), stateOf(static_cast<float>(step)).get(), step));
    ASSERT_FP8RT(fp8rt_checkpoints_finish(checkpoints.get()));
  }

  std::vector<std::unique_ptr<Literal<float>>> scale, history;
};

TEST_F(CheckpointsTest, EveryFlippedBitIsNoticed) {
  ASSERT_FP8RT(fp8rt_tensors_write(stateOf(56).get(), path("s").c_str()));
  const std::string good = readFile(path("s"));
  EXPECT_EQ(scaleIn("s"), 56);
  std::ofstream(path("bad"), std::ios::binary) << good;
  auto put = [file = std::fstream(path("bad"), std::ios::binary | std::ios::in | std::ios::out)](
                 size_t at, int byte) mutable {
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte)).flush();
  };
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    put(bit / 8, good[bit / 8] ^ (1 << bit % 8));
    fp8rt_tensors *read = nullptr;
    fp8rt_status status = fp8rt_tensors_read(path("bad").c_str(), &read);
    fp8rt_tensors_destroy(read);
    ASSERT_TRUE(status == FP8RT_CORRUPT || status == FP8RT_UNSUPPORTED)
        << "bit " << bit % 8 << " of byte " << bit / 8;
    put(bit / 8, good[bit / 8]);
  }
  EXPECT_EQ(scaleIn("bad"), 56);
}

TEST_F(CheckpointsTest, EveryTruncationIsNoticed) {
  ASSERT_FP8RT(fp8rt_tensors_write(stateOf(56).get(), path("s").c_str()));
  const std::string good = readFile(path("s"));
  for (size_t size = good.size(); size-- > 0;) {
    std::filesystem::resize_file(path("s"), size);
    fp8rt_tensors *read = nullptr;
    ASSERT_EQ(fp8rt_tensors_read(path("s").c_str(), &read), FP8RT_CORRUPT) << size << " bytes";
  }
}

TEST_F(CheckpointsTest, AChecksumThatIsWrongIsNamed) {
  ASSERT_FP8RT(fp8rt_tensors_write(stateOf(56).get(), path("s").c_str()));
  std::string file = readFile(path("s"));
  file.back() ^= 1;
  std::ofstream(path("s"), std::ios::binary) << file;
  fp8rt_tensors *read = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_tensors_read(path("s").c_str(), &read), FP8RT_CORRUPT,
                     "its checksum is wrong: it is damaged");
}

TEST_F(CheckpointsTest, TheNewestReplacesTheOthers) {
  save(1, -1, {1, 2, 3});
  EXPECT_EQ(sorted(), (std::vector<std::string>{"s.st"}));
  EXPECT_EQ(scaleIn("s.st"), 3);
}

TEST_F(CheckpointsTest, TheLastAreKept) {
  save(3, -1, {10, 20, 30, 40, 50});
  EXPECT_EQ(sorted(), (std::vector<std::string>{"s.30.st", "s.40.st", "s.st"}));
  EXPECT_EQ(scaleIn("s.30.st"), 30);
  EXPECT_EQ(scaleIn("s.40.st"), 40);
  EXPECT_EQ(scaleIn("s.st"), 50);
  // The run goes on.
  save(3, 50, {60});
  EXPECT_EQ(sorted(), (std::vector<std::string>{"s.40.st", "s.50.st", "s.st"}));
  EXPECT_EQ(scaleIn("s.50.st"), 50);
  EXPECT_EQ(scaleIn("s.st"), 60);
}

TEST_F(CheckpointsTest, OfAnotherRunOnlySmallerNumbersAreDeleted) {
  for (const char *name : {"s.5.st", "s.99.st", "s.x.st", "other.5.st", "s.5.stx", "s.05.st"})
    std::ofstream(path(name)) << "text";
  save(2, -1, {10, 20});
  EXPECT_EQ(sorted(), (std::vector<std::string>{"other.5.st", "s.05.st", "s.10.st", "s.5.stx", "s.99.st",
                                                "s.st", "s.x.st"}));
}

TEST_F(CheckpointsTest, TheCopyIsOfTheMomentOfTheCall) {
  auto checkpoints =
      make<Checkpoints>([&](auto out) { return fp8rt_checkpoints_create(path("s").c_str(), 1, -1, out); });
  Tensors tensors = stateOf(7);
  ASSERT_FP8RT(fp8rt_checkpoints_save(checkpoints.get(), tensors.get(), 1));
  std::fill_n(scale.back()->data.begin(), 2, 8.0f);
  ASSERT_FP8RT(fp8rt_checkpoints_finish(checkpoints.get()));
  EXPECT_EQ(scaleIn("s"), 7);
}

TEST_F(CheckpointsTest, ErrorsComeOutOnce) {
  auto checkpoints = make<Checkpoints>(
      [&](auto out) { return fp8rt_checkpoints_create(path("none/s").c_str(), 1, -1, out); });
  ASSERT_FP8RT(fp8rt_checkpoints_save(checkpoints.get(), stateOf(1).get(), 1));
  EXPECT_FP8RT_ERROR(fp8rt_checkpoints_finish(checkpoints.get()), FP8RT_IO,
                     "none/s: cannot write: No such file");
  EXPECT_EQ(fp8rt_checkpoints_check(checkpoints.get()), FP8RT_OK);
  std::filesystem::create_directory(path("none"));
  ASSERT_FP8RT(fp8rt_checkpoints_save(checkpoints.get(), stateOf(2).get(), 2));
  ASSERT_FP8RT(fp8rt_checkpoints_finish(checkpoints.get()));
  EXPECT_EQ(scaleIn("none/s"), 2);
}

TEST_F(CheckpointsTest, AnErrorIsThatOfTheNextSave) {
  auto checkpoints = make<Checkpoints>(
      [&](auto out) { return fp8rt_checkpoints_create(path("none/s").c_str(), 1, -1, out); });
  fp8rt_status status = FP8RT_OK;
  for (uint64_t step = 1; status == FP8RT_OK && step < 5; ++step) // two may wait to be written
    status = fp8rt_checkpoints_save(checkpoints.get(), stateOf(1).get(), step);
  EXPECT_EQ(status, FP8RT_IO);
}

TEST_F(CheckpointsTest, WhatAKilledProcessLeftIsDeleted) {
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  std::ofstream(path(".s.st." + std::to_string(child) + ".0.tmp")) << "half a checkpoint";
  std::ofstream(path(".s.st.mine.tmp")) << "not ours";
  save(1, -1, {1});
  EXPECT_EQ(sorted(), (std::vector<std::string>{".s.st.mine.tmp", "s.st"}));
}

TEST_F(CheckpointsTest, WrongArguments) {
  fp8rt_checkpoints *created = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_checkpoints_create("s", 0, -1, &created), FP8RT_INVALID_ARGUMENT,
                     "keep_last is 0");
  EXPECT_FP8RT_ERROR(fp8rt_checkpoints_create(nullptr, 1, -1, &created), FP8RT_INVALID_ARGUMENT,
                     "path is null");
  EXPECT_EQ(fp8rt_checkpoints_save(nullptr, nullptr, 1), FP8RT_INVALID_ARGUMENT);
  fp8rt_checkpoints_destroy(nullptr);
}

} // namespace
