// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the state of a program together from that of a file: columns in another order or format, and a history
// of another length.

#include "StateImport.h"
#include "../core/Status.h"
#include "Manifest.h"
#include "State.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

using namespace fp8rt;

namespace {

class Import {
public:
  Import(const Manifest &manifest, const fp8rt_tensors &tensors, const fp8rt_import_options &options)
      : manifest(manifest), tensors(tensors), options(options) {}

  std::vector<ImportedTensor> prepare();

private:
  void checkMetadata();
  const std::string &metadata(const char *key) const;
  const Tensor &findColumns(const StateTensor &wanted) const;
  ImportedTensor import(const StateTensor &wanted);
  ImportedTensor importColumns(const StateTensor &wanted);
  Tensor fitHistory(const Tensor &from, const Shape &shape) const;
  Tensor gather(const Tensor &from, const StateTensor &wanted) const;
  float gatherScale(const float *row, size_t column) const;
  float gatherAmax(const float *row, size_t column) const;
  void note(const std::string &difference);

  const Manifest &manifest;
  const fp8rt_tensors &tensors;
  const fp8rt_import_options &options;
  std::vector<Column> programColumns, fileColumns;
  /// Unset if the columns are the same.
  std::optional<ColumnMatch> match;
  std::vector<std::string> differences;
};

} // namespace

/// Returns whether the tensor has a column for each of the program's, in its last dimension.
static bool isByColumn(const StateTensor &tensor) {
  return tensor.name == kScaleName || tensor.name == kHistoryName;
}

const std::string &Import::metadata(const char *key) const {
  auto found = tensors.metadata.find(key);
  if (found == tensors.metadata.end())
    fail(FP8RT_CORRUPT, std::string("not a state file: its metadata has no ") + key);
  return found->second;
}

/// Notes a difference, which is an error where the import is strict.
void Import::note(const std::string &difference) {
  if (options.strict)
    fail(FP8RT_MISMATCH, difference);
  differences.push_back(difference);
}

void Import::checkMetadata() {
  if (metadata("version") != kStateFileVersion)
    fail(FP8RT_UNSUPPORTED, "state file of version " + inQuotes(metadata("version")) +
                                ", this runtime knows version " + kStateFileVersion);
  const std::string &hash = metadata("layout_hash"), &expected = manifest.layoutHash;
  if (hash == expected)
    return;
  std::string otherHash = "its layout hash " + inQuotes(hash) + " is not the program's " + inQuotes(expected);
  std::string otherProgram = otherHash + ": it was saved by a program with other FP8 sites or options";
  programColumns = parseColumns(manifest.columns);
  fileColumns = parseColumns(metadata("columns"));
  if (fileColumns == programColumns) {
    if (!hash.empty())
      fail(FP8RT_MISMATCH, otherHash + ", and its columns are: one of the two was changed");
    return;
  }
  match = matchColumns(programColumns, fileColumns);
  if (options.strict)
    fail(FP8RT_MISMATCH, otherProgram + "; " + match->differences.front());
  if (match->isEmpty())
    fail(FP8RT_MISMATCH, otherProgram + "; it has no site of this program: sites can be renamed "
                                        "(fp8-run --rename)");
  differences = match->differences;
}

/// Returns whether `tensor` is a history with as many columns as `shape`, of any length.
static bool isHistoryOfColumns(const Tensor *tensor, const StateTensor &wanted, const Shape &shape) {
  return wanted.name == kHistoryName && tensor && tensor->shape().size() == 2 && shape.size() == 2 &&
         tensor->shape()[0] > 0 && tensor->shape()[1] == shape[1] &&
         accepts(wanted.type->dlpack, tensor->type().dlpack);
}

/// Returns the tensor of the file; throws unless it has the type, as many columns as its metadata says, and
/// the rows that the options allow.
const Tensor &Import::findColumns(const StateTensor &wanted) const {
  Shape shape = wanted.shape;
  if (match) {
    if (shape.empty() || shape.back() != static_cast<int64_t>(programColumns.size()) ||
        std::strcmp(wanted.type->mlir, "f32") != 0)
      fail(FP8RT_CORRUPT, "the program's state " + inQuotes(wanted.name) + " does not fit its columns");
    shape.back() = static_cast<int64_t>(fileColumns.size());
  }
  const Tensor *tensor = tensors.find(wanted.name);
  if (!isHistoryOfColumns(tensor, wanted, shape) || tensor->shape()[0] == shape[0])
    return findFitting(tensors, wanted.name, *wanted.type, shape);
  if (options.history == FP8RT_HISTORY_EXACT)
    fail(FP8RT_MISMATCH, "its " + inQuotes(wanted.name) + " has " + std::to_string(tensor->shape()[0]) +
                             " rows, the program's " + std::to_string(shape[0]) +
                             ": take over its newest rows or its oldest (fp8-run --history)");
  return *tensor;
}

/// Returns a history of that shape with row 0 of `from` and as many other rows as fit; the remaining
/// rows are 0.
Tensor Import::fitHistory(const Tensor &from, const Shape &shape) const {
  Tensor to(from.type(), shape);
  if (!to.bytes())
    return to;
  size_t rows = from.shape()[0], wanted = shape[0], rowBytes = to.bytes() / wanted;
  size_t kept = std::min(rows, wanted) - 1;
  bool newest = options.history == FP8RT_HISTORY_NEWEST;
  const char *source = static_cast<const char *>(from.data());
  char *target = static_cast<char *>(to.data());
  std::memset(target, 0, to.bytes());
  std::memcpy(target, source, rowBytes);
  std::memcpy(target + (newest ? wanted - kept : 1) * rowBytes,
              source + (newest ? rows - kept : 1) * rowBytes, kept * rowBytes);
  return to;
}

/// Returns the smallest scale of the columns that column `column` of the program continues.
float Import::gatherScale(const float *row, size_t column) const {
  std::optional<float> smallest;
  for (size_t source : match->sources[column]) {
    double quotient = programColumns[column].fp8Max / fileColumns[source].fp8Max;
    float scale = static_cast<float>(std::min<double>(row[source] * quotient, FLT_MAX));
    smallest = smallest ? std::min(*smallest, scale) : scale;
  }
  return smallest.value_or(1.0f);
}

/// Returns their largest amax; a NaN is none.
float Import::gatherAmax(const float *row, size_t column) const {
  float largest = 0;
  for (size_t source : match->sources[column])
    largest = std::fmax(largest, row[source]);
  return largest;
}

/// Returns scales or a history with the program's columns.
Tensor Import::gather(const Tensor &from, const StateTensor &wanted) const {
  Shape shape = from.shape();
  size_t given = fileColumns.size(), count = programColumns.size();
  shape.back() = static_cast<int64_t>(count);
  Tensor to(from.type(), shape);
  size_t rows = given ? from.bytes() / (sizeof(float) * given) : 0;
  std::vector<float> row(given);
  for (size_t r = 0; r < rows; ++r) {
    // Data of a file may be unaligned.
    std::memcpy(row.data(), static_cast<const char *>(from.data()) + r * given * sizeof(float),
                given * sizeof(float));
    for (size_t c = 0; c < count; ++c)
      static_cast<float *>(to.data())[r * count + c] =
          wanted.name == kScaleName ? gatherScale(row.data(), c) : gatherAmax(row.data(), c);
  }
  return to;
}

ImportedTensor Import::importColumns(const StateTensor &wanted) {
  ImportedTensor imported;
  imported.fromFile = &findColumns(wanted);
  if (match)
    imported.made = gather(*imported.fromFile, wanted);
  if (wanted.name == kHistoryName && imported.get()->shape() != wanted.shape) {
    differences.push_back("the history has " + std::to_string(imported.get()->shape()[0]) +
                          " rows, the program's " + std::to_string(wanted.shape[0]) + ": its " +
                          (options.history == FP8RT_HISTORY_NEWEST ? "newest" : "oldest") +
                          " are taken over");
    imported.made = fitHistory(*imported.get(), wanted.shape);
  }
  return imported;
}

ImportedTensor Import::import(const StateTensor &wanted) {
  if (wanted.derived)
    return {};
  if (isByColumn(wanted))
    return importColumns(wanted);
  ImportedTensor imported;
  imported.fromFile = &findFitting(tensors, wanted.name, *wanted.type, wanted.shape);
  return imported;
}

std::vector<ImportedTensor> Import::prepare() {
  checkMetadata();
  std::vector<ImportedTensor> imported;
  for (const StateTensor &wanted : manifest.state)
    imported.push_back(import(wanted));
  for (const auto &[name, item] : tensors.items)
    if (name.rfind(kCarryPrefix, 0) != 0 && !manifest.findState(name))
      note("tensor " + inQuotes(name) + " is not part of the program's state");
  if (options.report)
    for (const std::string &difference : differences)
      options.report(options.report_context, difference.c_str());
  return imported;
}

std::vector<ImportedTensor> fp8rt::prepareImport(const Manifest &manifest, const fp8rt_tensors &tensors,
                                                 const fp8rt_import_options &options) {
  return Import(manifest, tensors, options).prepare();
}

void fp8rt::renameSites(fp8rt_tensors &tensors, const Renames &renames) {
  std::vector<bool> used(renames.size());
  auto columns = tensors.metadata.find("columns");
  if (columns == tensors.metadata.end())
    fail(FP8RT_CORRUPT, "not a state file: its metadata has no columns");
  std::string renamedColumns = renameColumns(columns->second, renames, used);
  std::map<std::string, std::string> names; // new to old
  for (const auto &[name, item] : tensors.items) {
    bool isCarried = name.rfind(kCarryPrefix, 0) == 0;
    size_t prefix = isCarried ? std::strlen(kCarryPrefix) : 0;
    std::string renamed = name.substr(0, prefix) + renameSite(name.substr(prefix), renames, used);
    if (!names.emplace(renamed, name).second)
      fail(FP8RT_MISMATCH, "two tensors would be called " + inQuotes(renamed));
  }
  for (size_t i = 0; i < renames.size(); ++i)
    if (!used[i])
      fail(FP8RT_NOT_FOUND, "there is no site " + inQuotes(renames[i].first) + " to rename");
  std::map<std::string, fp8rt_tensors::Item> items;
  for (const auto &[renamed, name] : names)
    items.emplace(renamed, std::move(tensors.items.at(name)));
  for (auto &[name, item] : items)
    item.view = item.tensor.view();
  tensors.items = std::move(items);
  // The hash is of the old names; the columns tell.
  tensors.metadata["layout_hash"] = "";
  columns->second = renamedColumns;
}
