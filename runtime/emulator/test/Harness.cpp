// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels run from PTX text in tests.

#include "Harness.h"

using namespace fp8emu;
using namespace fp8emu::test;

TestMachine::TestMachine(const std::string &ptx, Settings settings)
    : settings(std::move(settings)), module(device.load(Source(ptx))) {}

uint64_t TestMachine::allocate(uint64_t bytes) {
  return device.allocate(bytes, "a test's buffer", 256).value();
}

const Kernel &TestMachine::find(const std::string &kernel) const {
  if (const Kernel *found = module->find(kernel))
    return *found;
  throw std::runtime_error("no kernel " + kernel);
}

void TestMachine::append(std::vector<uint8_t> &bytes, const void *value, size_t size) {
  bytes.resize((bytes.size() + size - 1) / size * size);
  const auto *from = static_cast<const uint8_t *>(value);
  bytes.insert(bytes.end(), from, from + size);
}

std::optional<Fault> TestMachine::run(const std::string &kernel, LaunchConfig config) {
  return device.launch(find(kernel), std::move(config), settings, &profile);
}

std::string fp8emu::test::kernelText(const std::string &body, unsigned inputs, const std::string &target) {
  std::string text =
      ".version 9.2\n.target " + target + "\n.address_size 64\n.visible .entry k(.param .u64 out";
  for (unsigned i = 0; i < inputs; ++i)
    text += ", .param .u64 in" + std::to_string(i);
  text += ") {\n.reg .b32 %r<64>, %i, %i4, %i8;\n.reg .b64 %rd<64>, %out, %tail;\n.reg .b16 %rs<64>;\n"
          ".reg .f32 %f<64>;\n.reg .f64 %fd<64>;\n.reg .pred %p<16>;\n";
  for (unsigned i = 0; i < inputs; ++i)
    text += ".reg .b64 %in" + std::to_string(i) + ";\n";
  text += "ld.param.u64 %out, [out];\n";
  for (unsigned i = 0; i < inputs; ++i)
    text += "ld.param.u64 %in" + std::to_string(i) + ", [in" + std::to_string(i) + "];\n";
  text += "{ .reg .b32 %a, %b, %c;\nmov.u32 %a, %ctaid.x;\nmov.u32 %b, %ntid.x;\nmov.u32 %c, %tid.x;\n"
          "mad.lo.u32 %i, %a, %b, %c; }\nmul.lo.u32 %i4, %i, 4;\nmul.lo.u32 %i8, %i, 8;\n";
  return text + body + "\nret;\n}\n";
}
