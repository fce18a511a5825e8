// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the parser's tests: modules around a few lines of PTX.

#ifndef FP8EMU_TEST_PARSERSUPPORT_H
#define FP8EMU_TEST_PARSERSUPPORT_H

#include "ptx/Parser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace fp8emu_test {

/// `text` on line 4 of a module.
inline std::string moduleText(const std::string &text) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + text;
}

inline fp8emu::ptx::Module parseModule(const std::string &text) {
  return fp8emu::ptx::parse(moduleText(text));
}

/// A kernel of these statements, which begin on line 5.
inline std::string kernelText(const std::string &statements) {
  return moduleText(".entry k(.param .b64 a) {\n" + statements + "\n}\n");
}

/// The only function of a module.
inline fp8emu::ptx::Function parseKernel(const std::string &statements) {
  return fp8emu::ptx::parse(kernelText(statements)).functions.at(0);
}

/// The PTX files beside the tests, by name, with their text.
std::vector<std::pair<std::string, std::string>> fixtures();

} // namespace fp8emu_test

#endif // FP8EMU_TEST_PARSERSUPPORT_H
