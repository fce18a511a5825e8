// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counting the instructions of a module by their text.

#include "Coverage.h"

#include "Arguments.h"
#include "Machine.h"

#include "exec/Places.h"
#include "isa/Build.h"
#include "ptx/Parser.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace fp8ptx;
using namespace fp8emu;
using llvm::Error;
using llvm::Expected;

namespace {

/// An instruction with its modifiers, as in "ld.global.f32".
struct Entry {
  unsigned count = 0;
  /// Of the first one.
  uint32_t line = 0;
  /// Why it is not known; empty where it is.
  std::string missing;
};
using Table = std::map<std::string, Entry>;

using Place = std::pair<uint32_t, uint32_t>;

Table count(const ptx::Module &module, const std::map<Place, std::string> &unknown) {
  Table table;
  for (const ptx::Function &function : module.functions)
    for (const ptx::Instruction &instruction : function.instructions) {
      std::string text = textOf(instruction);
      auto found = unknown.find({instruction.where.line, instruction.where.column});
      // One text may be known with some operands and not with others.
      Entry &entry = table[found == unknown.end() ? text : text + " "];
      if (!entry.count++)
        entry.line = instruction.where.line;
      if (found != unknown.end())
        entry.missing = llvm::StringRef(found->second).consume_front(text + ": ")
                            ? found->second.substr(text.size() + 2)
                            : found->second;
    }
  return table;
}

void print(llvm::StringRef file, const ptx::Module &module, const Table &table, bool missingOnly) {
  unsigned all = 0, lacking = 0, lackingKinds = 0;
  for (const auto &[text, entry] : table) {
    all += entry.count;
    if (!entry.missing.empty())
      lacking += entry.count, ++lackingKinds;
  }
  llvm::outs() << file << ": " << module.target << ", PTX " << module.version.first << "."
               << module.version.second << ", " << all << " instructions of " << table.size() << " kinds";
  if (lacking)
    llvm::outs() << "; missing are " << lacking << " of " << lackingKinds << " kinds";
  else
    llvm::outs() << ", nothing is missing";
  llvm::outs() << "\n";
  if (missingOnly && !lacking)
    return;
  llvm::outs() << "   count  first line  instruction\n";
  for (const auto &[text, entry] : table) {
    if (missingOnly && entry.missing.empty())
      continue;
    llvm::outs() << llvm::format("%8u %11u  ", entry.count, entry.line) << llvm::StringRef(text).rtrim();
    if (!entry.missing.empty())
      llvm::outs() << "  MISSING: " << entry.missing;
    llvm::outs() << "\n";
  }
}

} // namespace

Expected<bool> fp8ptx::coverage(const std::string &file, bool missingOnly) {
  auto text = readText(file);
  if (!text)
    return text.takeError();
  try {
    ptx::Module module = ptx::parse(*text);
    std::map<Place, std::string> unknown;
    for (const UnknownInstruction &one : findUnknown(module))
      unknown[{one.where.line, one.where.column}] = one.message;
    print(file, module, count(module, unknown), missingOnly);
    return unknown.empty();
  } catch (const PtxError &error) {
    return failureAt(file, error.where, error.message);
  }
}
