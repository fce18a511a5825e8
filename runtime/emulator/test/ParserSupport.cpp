// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the PTX files beside the tests.

#include "ParserSupport.h"

#include <algorithm>
#include <fstream>
#include <iterator>

std::vector<std::pair<std::string, std::string>> fp8emu_test::fixtures() {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto &entry : std::filesystem::directory_iterator(FP8EMU_TEST_INPUTS)) {
    if (entry.path().extension() != ".ptx")
      continue;
    std::ifstream file(entry.path(), std::ios::binary);
    texts.emplace_back(entry.path().filename(), std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}
