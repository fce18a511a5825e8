// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words for missing ranks.

#include "Missing.h"

#include <cstdio>
#include <fstream>

using namespace fp8rt;
using namespace fp8rt::collectives;

std::string collectives::describeRanks(const std::vector<uint32_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string collectives::describeSeconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", seconds);
  return text;
}

std::string collectives::describeStopped(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  size_t name = text.rfind(") "); // the end of the program's name
  if (name == std::string::npos || text.size() < name + 3 || text[name + 2] != 'T')
    return "";
  return " (its process " + std::to_string(process) + " is stopped)";
}
