// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the numbers of rows on which code is evaluated.

#include "TrialRows.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace fp8;

static constexpr int64_t kUnknownSize = 24;

TrialRow::TrialRow(const ElementCode &code, ArrayRef<const CodeNode *> matmuls, ArrayRef<unsigned> keys,
                   const Trial &trial, uint64_t seed)
    : code(code), matmuls(matmuls), keys(keys), trial(trial), seed(seed), evaluator(makeEvaluator()) {
  Numbers numbers(seed);
  auto getSize = [&](unsigned dim) {
    int64_t size = code.getSizes()[dim];
    return std::max<int64_t>(1, ShapedType::isDynamic(size) ? kUnknownSize : size);
  };
  // Every other row is one that has a key of its number, so that a window lets it see some.
  int64_t mostKeys =
      keys.empty() || seed % 2 == 0 ? std::numeric_limits<int64_t>::max() : getSize(keys.front());
  for (unsigned dim = 0; dim < code.getSizes().size(); ++dim)
    indices.push_back(numbers.next() % std::min(getSize(dim), mostKeys));
  for (auto [dim, size] : llvm::enumerate(code.getSizes()))
    ranges.push_back(chooseRange(dim, ShapedType::isDynamic(size) ? kUnknownSize : size, numbers));
}

CodeEvaluator TrialRow::makeEvaluator() {
  return CodeEvaluator([this](const CodeNode &element, ArrayRef<int64_t> at) { return read(element, at); },
                       [this](unsigned dim) { return ArrayRef(ranges[dim]); }, Rounding::none);
}

/// Some numbers of the range, in order: both ends, those around the indices of the row, where causal masks
/// and windows end, and random ones.
SmallVector<int64_t> TrialRow::chooseRange(unsigned dim, int64_t size, Numbers &numbers) const {
  bool isKey = llvm::is_contained(keys, dim);
  SmallVector<int64_t> chosen;
  auto add = [&](int64_t index) {
    if (index >= 0 && index < size && !llvm::is_contained(chosen, index))
      chosen.push_back(index);
  };
  if (isKey && trial.hasOneKey) {
    add(numbers.next() % std::max<int64_t>(size, 1));
    return chosen;
  }
  for (int64_t index : indices) {
    add(index);
    add(index - 1);
  }
  for (unsigned i = 0; i < 3; ++i)
    add(numbers.next() % std::max<int64_t>(size, 1));
  add(0);
  add(size - 1);
  llvm::sort(chosen);
  return chosen;
}

std::optional<ScalarValue> TrialRow::makeNumber(Type type, Value tensor, Numbers &numbers) const {
  bool isRaw = tensor == matmuls.front()->value;
  if (auto floats = dyn_cast<FloatType>(type)) {
    double number = 0;
    for (unsigned i = 0; i < 4; ++i)
      number += numbers.uniform() / 2;
    if (isRaw && numbers.chance(trial.infinite))
      return trial.isEmpty || numbers.chance(0.9) ? -INFINITY : INFINITY;
    if (llvm::any_of(ArrayRef(matmuls).drop_front(),
                     [&](const CodeNode *matmul) { return matmul->value == tensor; }))
      return number;
    if (!isRaw && numbers.chance(trial.isEmpty ? trial.masked : trial.masked / 2))
      return trial.isEmpty || numbers.chance(0.5)
                 ? -INFINITY
                 : APFloat::getLargest(floats.getFloatSemantics(), true).convertToDouble();
    return number * (isRaw ? trial.scale : 1);
  }
  if (type.isInteger(1))
    return APInt(1, !numbers.chance(trial.masked));
  // Small numbers, which are equal now and then, as segments are; or of the size of indices, as lengths are.
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  int64_t size = keys.empty() ? ShapedType::kDynamic : code.getSizes()[keys[0]];
  uint64_t most = seed % 2 ? 2 : ShapedType::isDynamic(size) ? kUnknownSize : size + 1;
  return APInt(width, numbers.next() % most, false, true);
}

std::optional<ScalarValue> TrialRow::read(const CodeNode &element, ArrayRef<int64_t> at) {
  auto type = dyn_cast<RankedTensorType>(element.value.getType());
  int64_t position = 0;
  for (auto [dim, index] : llvm::enumerate(at)) {
    int64_t size = type ? type.getDimSize(dim) : 1;
    if (index < 0 || (!ShapedType::isDynamic(size) && index >= size))
      return std::nullopt;
    position = position * (ShapedType::isDynamic(size) ? int64_t(1) << 20 : size) + index;
  }
  if (DenseElementsAttr constants; matchPattern(element.value, m_Constant(&constants)))
    return getScalarValue(constants.getValues<Attribute>()[position]);
  unsigned number = tensors.insert({element.value.getAsOpaquePointer(), tensors.size()}).first->second;
  Numbers numbers(seed ^ Numbers(number * uint64_t(0x10001) + position * uint64_t(0x100000001)).next());
  return makeNumber(element.type, element.value, numbers);
}

std::optional<SmallVector<double>> TrialRow::compute(const CodeNode *node, ArrayRef<FixedNode> fixed) {
  CodeEvaluator other = makeEvaluator();
  for (const auto &[part, value] : fixed)
    other.fix(part, value);
  CodeEvaluator &chosen = fixed.empty() ? evaluator : other;
  SmallVector<double> row;
  SmallVector<int64_t> at = indices;
  std::function<bool(unsigned)> visit = [&](unsigned number) {
    if (number == keys.size()) {
      std::optional<ScalarValue> value = chosen.compute(node, at);
      if (!value || !std::holds_alternative<double>(*value))
        return false;
      row.push_back(std::get<double>(*value));
      return true;
    }
    return llvm::all_of(ranges[keys[number]], [&](int64_t index) {
      at[keys[number]] = index;
      return visit(number + 1);
    });
  };
  return visit(0) ? std::optional(row) : std::nullopt;
}

std::optional<SmallVector<double>>
fp8::computeScores(const SoftmaxForm &form,
                   llvm::function_ref<std::optional<SmallVector<double>>(const CodeNode *)> compute) {
  std::optional<SmallVector<double>> scores = compute(form.score);
  if (!scores || !form.sink)
    return scores;
  std::optional<SmallVector<double>> sink = compute(form.sink); // the same for all keys
  if (!sink || sink->empty())
    return std::nullopt;
  scores->push_back(sink->front());
  return scores;
}

std::optional<RowStatistics> fp8::computeStatistics(ArrayRef<double> scores, bool isBaseTwo) {
  RowStatistics of{-INFINITY, 0};
  for (double score : scores) {
    if (std::isnan(score))
      return std::nullopt;
    of.maximum = std::max(of.maximum, score);
  }
  if (std::isinf(of.maximum))
    return std::nullopt;
  for (double score : scores)
    of.sum += isBaseTwo ? std::exp2(score - of.maximum) : std::exp(score - of.maximum);
  return of;
}

bool fp8::areClose(double x, double y) { return std::fabs(x - y) <= 1e-12 + 1e-9 * std::fabs(y); }
