// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Profiles of launches, joined by kernel: as JSON and as a table.

#include "../Places.h"
#include "../Program.h"
#include "Profile.h"

#include <algorithm>
#include <cstdio>

using namespace fp8emu;

void ProfileReport::add(const Program &program, const FunctionCode &kernel, const Profile &profile) {
  KernelProfile &own = byKernel[kernel.name];
  ++own.launches;
  for (size_t pc = 0; pc < profile.ops().size(); ++pc) {
    const Counts &counts = profile.ops()[pc];
    if (!counts.warpInstructions)
      continue;
    own.total.add(counts);
    // The return at the end of a function is in no text.
    const ptx::Instruction *instruction = program.instructions[pc];
    if (!instruction)
      continue;
    InstructionProfile &line = own.instructions[{instruction->where.line, instruction->where.column}];
    line.instruction = textOf(*instruction);
    line.source = sourceOf(*program.tree, *instruction);
    line.counts.add(counts);
  }
}

namespace {

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    char escape[8];
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      std::snprintf(escape, sizeof escape, "\\u%04x", c), out += escape;
    else
      out += c;
  }
  return out + "\"";
}

/// "name": 1, ... of a set of counts.
std::string fields(const Counts &counts, bool zeros) {
  std::string out;
  for (const CountName &name : countNames())
    if (zeros || counts.*name.member)
      out += (out.empty() ? "" : ", ") + quoted(name.name) + ": " + std::to_string(counts.*name.member);
  return out;
}

std::string instructionFields(uint32_t line, const InstructionProfile &profile) {
  std::string out = "{\"line\": " + std::to_string(line);
  if (!profile.source.empty())
    out += ", \"source\": " + quoted(profile.source);
  return out + ", \"instruction\": " + quoted(profile.instruction) + ", " +
         fields(profile.counts, /*zeros=*/false) + "}";
}

/// As in 1234567 -> 1 234 567.
std::string grouped(uint64_t value) {
  std::string digits = std::to_string(value), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0)
      out += ' ';
    out += digits[i];
  }
  return out;
}

std::string padded(std::string text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// A table's columns: of several counts their sum.
struct Column {
  const char *title;
  uint64_t (*value)(const Counts &);
};
const Column kColumns[] = {
    {"warps", [](const Counts &c) { return c.warpInstructions; }},
    {"threads", [](const Counts &c) { return c.threadInstructions; }},
    {"global B", [](const Counts &c) { return c.globalRead + c.globalWritten; }},
    {"sectors", [](const Counts &c) { return c.globalSectors; }},
    {"shared B", [](const Counts &c) { return c.sharedRead + c.sharedWritten; }},
    {"conflicts", [](const Counts &c) { return c.bankConflicts; }},
    {"local B", [](const Counts &c) { return c.localRead + c.localWritten; }},
    {"tensor ops", [](const Counts &c) { return c.tensorOperations; }},
    {"waits", [](const Counts &c) { return c.waits; }},
};

/// The rows of one kernel, columns without any count left out.
class TableWriter {
public:
  explicit TableWriter(const KernelProfile &kernel) {
    for (const Column &column : kColumns)
      if (uint64_t total = column.value(kernel.total)) {
        columns.push_back(&column);
        widths.push_back(std::max(std::string(column.title).size(), grouped(total).size()) + 2);
      }
  }

  std::string header() const {
    std::string out = padded("line", 6);
    for (size_t i = 0; i < columns.size(); ++i)
      out += padded(columns[i]->title, widths[i]);
    return out + "  instruction\n";
  }

  std::string row(const std::string &line, const Counts &counts, const std::string &text) const {
    std::string out = padded(line, 6);
    for (size_t i = 0; i < columns.size(); ++i) {
      uint64_t value = columns[i]->value(counts);
      out += padded(value ? grouped(value) : "", widths[i]);
    }
    return out + "  " + text + "\n";
  }

private:
  std::vector<const Column *> columns;
  std::vector<size_t> widths;
};

} // namespace

std::string ProfileReport::json() const {
  std::string out = "{\"version\": 1, \"kernels\": [";
  const char *separator = "\n";
  for (const auto &[name, kernel] : byKernel) {
    out += separator + std::string(" {\"kernel\": ") + quoted(name) +
           ", \"launches\": " + std::to_string(kernel.launches) + ",\n  \"total\": {" +
           fields(kernel.total, /*zeros=*/true) + "},\n  \"instructions\": [";
    const char *between = "\n   ";
    for (const auto &[place, instruction] : kernel.instructions) {
      out += between + instructionFields(place.first, instruction);
      between = ",\n   ";
    }
    out += "]}";
    separator = ",\n";
  }
  return out + "]}\n";
}

std::string ProfileReport::table() const {
  std::string out;
  for (const auto &[name, kernel] : byKernel) {
    out += (out.empty() ? "" : "\n") + name + ", launches: " + std::to_string(kernel.launches) + "\n";
    TableWriter table(kernel);
    out += table.header();
    for (const auto &[place, line] : kernel.instructions)
      out += table.row(std::to_string(place.first), line.counts,
                       line.instruction + (line.source.empty() ? "" : "  " + line.source));
    out += table.row("", kernel.total, "total");
  }
  return out;
}
