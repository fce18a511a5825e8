// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of --monitor in a terminal, drawn again in place after each step.

#ifndef FP8_TOOLS_FP8RUN_MONITORTABLE_H
#define FP8_TOOLS_FP8RUN_MONITORTABLE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace fp8run {

/// The values known of one quantized tensor after a step.
struct Reading {
  std::optional<int64_t> column; // of the state
  std::vector<std::string> sites;
  std::string tensor;
  std::optional<double> amax;                // of the step
  std::optional<double> scale;               // of the next step
  std::optional<double> underflow, overflow; // fractions of the elements
  std::optional<double> mse;                 // relative to the mean square
};

class MonitorTable {
public:
  /// `rows` and `columns` are the terminal's.
  MonitorTable(llvm::raw_ostream &os, unsigned rows, unsigned columns);

  /// Tells that something else has written a line below the table.
  void addLineBelow() { drawn += drawn ? 1 : 0; }

  /// Draws the table over the last one, and over lines below it.
  void draw(uint64_t step, llvm::StringRef printed, const std::vector<Reading> &readings);

private:
  void line(std::string text);
  void remember(const std::vector<Reading> &readings);
  std::string describe(const Reading &reading, size_t index) const;

  llvm::raw_ostream &os;
  unsigned height, width, sparks, nameWidth;
  unsigned drawn = 0;                                 // lines, with those below
  std::vector<std::deque<double>> amaxes, underflows; // of the last steps, by reading; NaN where unknown
};

/// Returns a character for each value, from the lowest to the highest of them; a space for NaN.
std::string sparkline(const std::deque<double> &values);

/// Returns the readings in the order in which they need attention: NaN or Inf, then elements that are cut
/// off, then lost.
std::vector<size_t> orderByNeed(const std::vector<Reading> &readings);

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_MONITORTABLE_H
