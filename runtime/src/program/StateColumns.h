// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The columns of a state in a file, matched by site and tensor with those of a program that has others.

#ifndef FP8RT_PROGRAM_STATECOLUMNS_H
#define FP8RT_PROGRAM_STATECOLUMNS_H

#include <string>
#include <utility>
#include <vector>

namespace fp8rt {

/// A column of `scale` and `amax_history`: one quantized tensor, and every site that reads it.
struct Column {
  std::vector<std::string> sites;
  std::string tensor; // input, weight or grad_output
  std::string format;
  double fp8Max = 0;

  bool operator==(const Column &other) const {
    return sites == other.sites && tensor == other.tensor && format == other.format;
  }
};

/// Parses the metadata `columns`; throws FP8RT_CORRUPT.
std::vector<Column> parseColumns(const std::string &text);

/// For messages: "column 'h0/fc1' input".
std::string describe(const Column &column);

/// The columns of a file that each column of a program continues.
struct ColumnMatch {
  /// By column of the program: columns of the file, several where the program has one for them all; empty
  /// for one that the file does not have. Formats may differ.
  std::vector<std::vector<size_t>> sources;
  /// A line for everything that is not the same in both.
  std::vector<std::string> differences;

  /// Whether the program has columns and the file has none of them.
  bool isEmpty() const;
};
ColumnMatch matchColumns(const std::vector<Column> &program, const std::vector<Column> &file);

/// A new name for a site, or for all sites below it: pairs of the old and the new name.
using Renames = std::vector<std::pair<std::string, std::string>>;

/// Returns the new name of a site by the first rule that applies: to that name, or to one that continues
/// with '/', '.' or '#'. `used` is set for the rule.
std::string renameSite(const std::string &site, const Renames &renames, std::vector<bool> &used);

/// Returns the metadata `columns` with the sites renamed.
std::string renameColumns(const std::string &text, const Renames &renames, std::vector<bool> &used);

} // namespace fp8rt

#endif // FP8RT_PROGRAM_STATECOLUMNS_H
