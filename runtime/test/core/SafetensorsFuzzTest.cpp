// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Damaged safetensors files must be refused with a message, never crash, and
// whatever is accepted must be readable. Every run takes other files: the seed
// is printed, and FP8RT_FUZZ_SEED=N repeats a run; FP8RT_FUZZ_RUNS says how
// long.

#include "TestSupport.h"

#include <cstdlib>
#include <fstream>
#include <random>

using namespace fp8rt_test;

namespace {

class SafetensorsFuzzTest : public WithFolder {};

uint64_t setting(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string validFile(const std::string &path) {
  Literal<float> a(kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  Literal<uint8_t> b({kDLBool, 8, 1}, {4}, {0, 1, 1, 0});
  Literal<uint16_t> c(kBF16, {0, 7}, {});
  Tensors tensors = newTensors();
  fp8rt_tensors_add(tensors.get(), "a", &a.view);
  fp8rt_tensors_add(tensors.get(), "b\"\\", &b.view);
  fp8rt_tensors_add(tensors.get(), "c", &c.view);
  fp8rt_tensors_set_metadata(tensors.get(), "version", "1");
  EXPECT_EQ(fp8rt_tensors_write(tensors.get(), path.c_str()), FP8RT_OK);
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// One to four changes of the kinds that storage and bugs make.
std::string damage(std::string bytes, std::mt19937_64 &random) {
  const std::string tokens = "0123456789-.[]{},:\"eE \\\xff";
  for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    size_t at = bytes.empty() ? 0 : random() % bytes.size();
    switch (random() % 6) {
    case 0: // a flipped bit
      if (!bytes.empty())
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 1: // another character of JSON
      if (!bytes.empty())
        bytes[at] = tokens[random() % tokens.size()];
      break;
    case 2: // the end is missing
      bytes.resize(at);
      break;
    case 3: // a piece is missing
      bytes.erase(at, 1 + random() % 16);
      break;
    case 4: // a piece is there twice
      bytes.insert(at, bytes.substr(at, random() % 64));
      break;
    default: // the header's length is another
      if (!bytes.empty())
        bytes[random() % std::min<size_t>(8, bytes.size())] = static_cast<char>(random());
    }
  }
  return bytes;
}

/// Reads every byte of every tensor, so that a sanitizer sees wrong extents.
uint64_t readAll(const fp8rt_tensors *tensors) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < fp8rt_tensors_count(tensors); ++i) {
    const DLTensor *tensor = fp8rt_tensors_find(tensors, fp8rt_tensors_name(tensors, i));
    uint64_t bytes = tensor->dtype.bits / 8;
    for (int32_t d = 0; d < tensor->ndim; ++d)
      bytes *= static_cast<uint64_t>(tensor->shape[d]);
    for (uint64_t b = 0; b < bytes; ++b)
      sum += static_cast<const uint8_t *>(tensor->data)[b];
  }
  return sum;
}

TEST_F(SafetensorsFuzzTest, DamagedFilesAreRefusedOrWhole) {
  uint64_t seed = setting("FP8RT_FUZZ_SEED", std::random_device{}());
  uint64_t runs = setting("FP8RT_FUZZ_RUNS", 3000);
  std::printf("FP8RT_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  std::string valid = validFile(path("valid"));
  std::string file = path("damaged");
  uint64_t refused = 0, sum = 0;
  for (uint64_t run = 0; run < runs; ++run) {
    std::ofstream(file, std::ios::binary) << damage(valid, random);
    fp8rt_tensors *read = nullptr;
    fp8rt_status status = fp8rt_tensors_read(file.c_str(), &read);
    Tensors tensors(read);
    if (status == FP8RT_OK) {
      sum += readAll(read);
      continue;
    }
    ++refused;
    ASSERT_TRUE(status == FP8RT_CORRUPT || status == FP8RT_UNSUPPORTED)
        << "run " << run << ": " << fp8rt_last_error();
    std::string error = fp8rt_last_error();
    ASSERT_EQ(error.find(file + ": "), 0u) << "run " << run << ": " << error;
    ASSERT_EQ(error.find('\n'), std::string::npos) << "run " << run;
  }
  // Only flips within the data leave a valid file.
  EXPECT_GT(refused, runs / 2);
  EXPECT_LT(refused, runs);
  EXPECT_GT(sum, 0u);
}

} // namespace
