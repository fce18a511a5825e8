// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts the instructions of a module by their text.

#include "Coverage.h"

#include "Arguments.h"
#include "LoadedKernel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace fp8ptx;
using namespace fp8emu;
using llvm::Expected;

namespace {

/// An instruction with its modifiers, as in "ld.global.f32".
struct Entry {
  unsigned count = 0;
  /// The line of the first one.
  uint32_t line = 0;
  /// Why the emulator does not support it; empty if it does.
  std::string missing;
};
using Table = std::map<std::string, Entry>;

Table count(const std::vector<ListedInstruction> &instructions) {
  Table table;
  for (const ListedInstruction &instruction : instructions) {
    const std::string &text = instruction.text;
    llvm::StringRef reason = instruction.unsupported;
    // An instruction may be supported with some operands and not with others.
    Entry &entry = table[reason.empty() ? text : text + " "];
    if (!entry.count++)
      entry.line = instruction.where.line;
    reason.consume_front(text + ": ");
    if (!reason.empty())
      entry.missing = reason.str();
  }
  return table;
}

void print(llvm::StringRef file, const Source &source, const Table &table, bool missingOnly) {
  unsigned all = 0, lacking = 0, lackingKinds = 0;
  for (const auto &[text, entry] : table) {
    all += entry.count;
    if (!entry.missing.empty())
      lacking += entry.count, ++lackingKinds;
  }
  llvm::outs() << file << ": " << source.target() << ", PTX " << source.version().first << "."
               << source.version().second << ", " << all << " instructions of " << table.size() << " kinds";
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
    const Source source(*text);
    const Table table = count(source.instructions());
    print(file, source, table, missingOnly);
    return llvm::all_of(table, [](const auto &entry) { return entry.second.missing.empty(); });
  } catch (const PtxError &error) {
    return failureAt(file, error.where, error.message);
  }
}
