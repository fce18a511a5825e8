// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions that the decoder refuses.

#include "Lanewise.h"

std::vector<std::string> fp8emu::test::refusals(const std::vector<std::string> &instructions) {
  // One instruction a line, the first in line 7.
  std::string text = ".version 9.2\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"
                     ".reg .b8 %b<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
                     ".reg .f32 %f<9>; .reg .f64 %e<9>; .reg .pred %p<9>;\n";
  for (const std::string &instruction : instructions)
    text += instruction + "\n";
  std::vector<std::string> messages(instructions.size());
  for (const ListedInstruction &one : Source(text + "ret;\n}\n").instructions())
    if (!one.unsupported.empty())
      messages.at(one.where.line - 7) = one.unsupported;
  return messages;
}
