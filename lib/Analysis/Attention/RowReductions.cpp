// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares the code of a place with the softmax of its scores on rows of numbers.

#include "fp8/Analysis/Attention/RowReductions.h"
#include "TrialRows.h"
#include <cmath>

using namespace mlir;
using namespace fp8;
using Kind = RowReduction::Kind;

/// Probabilities beyond it, of masks that are multiplied by lowest numbers, leave no digits in sums.
static constexpr double kMostProbability = 1e6;
/// Numbers below it tell no factor.
static constexpr double kLeastNumber = 1e-3;

/// Sums that cancel leave this much of their largest summand, computed in f64.
static constexpr double kRounding = 1e-12;

/// Returns whether two numbers are the same; infinities and NaN, too.
static bool areSame(double x, double y) {
  return x == y || (std::isnan(x) && std::isnan(y)) || areClose(x, y);
}

static bool areSame(ArrayRef<double> x, ArrayRef<double> y) {
  return llvm::all_of(llvm::zip_equal(x, y),
                      [](auto pair) { return areSame(std::get<0>(pair), std::get<1>(pair)); });
}

RowReductions::RowReductions(const AttentionSite &site, const CodeNode *gradient)
    : site(site), matmuls{site.raw} {
  if (gradient)
    matmuls.push_back(gradient);
  uint64_t seed = 1;
  for (const Trial &trial : kTrials)
    for (unsigned i = 0; i < kRepetitions && trial.scale <= kLargeScale; ++i)
      addSample(std::make_unique<TrialRow>(*site.code, matmuls, site.keys, trial, seed++));
  // Rows with a factor that is not 0 tell most, then those without; infinite raw scores are no masks.
  unsigned counts[3][3] = {};
  for (const Trial &trial : kEmptyTrials)
    for (unsigned i = 0; i < 4 * kRepetitions; ++i)
      addEmptyRow(std::make_unique<TrialRow>(*site.code, matmuls, site.keys, trial, seed++), counts);
  for (auto [rank, kinds] : llvm::enumerate(counts))
    if (auto [zero, nan, other] = kinds; zero + nan + other != 0) {
      decisive = rank;
      emptyRows = zero && !nan && !other   ? EmptyRows::zero
                  : nan && !zero && !other ? EmptyRows::nan
                                           : EmptyRows::mixed;
      break;
    }
}

RowReductions::~RowReductions() = default;

void RowReductions::addSample(std::unique_ptr<TrialRow> row) {
  std::optional<SmallVector<double>> scores = computeScores(
                                         site.form, [&](const CodeNode *node) { return row->compute(node); }),
                                     probabilities = row->compute(site.probability), gradients;
  std::optional<RowStatistics> of;
  if (scores && probabilities)
    of = computeStatistics(*scores, site.form.isBaseTwo);
  if (!of)
    return;
  double product = NAN, largest = 0;
  if (matmuls.size() > 1)
    gradients = row->compute(matmuls[1]);
  if (gradients) {
    product = 0;
    for (auto [probability, gradient] : llvm::zip_equal(*probabilities, *gradients)) {
      product += std::fabs(probability) <= kMostProbability ? probability * gradient : NAN;
      largest = std::max(largest, std::fabs(gradient));
    }
  }
  samples.push_back({std::move(row), of->maximum, of->sum, product, largest});
}

bool RowReductions::isEmpty(TrialRow &row) const {
  std::optional<SmallVector<double>> scores =
      computeScores(site.form, [&](const CodeNode *node) { return row.compute(node); });
  return scores && !scores->empty() && llvm::all_of(*scores, [](double x) { return x == -INFINITY; });
}

void RowReductions::addEmptyRow(std::unique_ptr<TrialRow> row, unsigned (&counts)[3][3]) {
  if (!isEmpty(*row))
    return;
  std::optional<SmallVector<double>> probabilities = row->compute(site.probability),
                                     factors = row->compute(site.probability, {{site.form.softmax, 1.0}});
  if (!probabilities || !factors)
    return;
  auto isZero = [](double x) { return x == 0; };
  unsigned rank = llvm::all_of(*factors, isZero) ? 1 : row->getTrial().infinite == 0 ? 0 : 2;
  unsigned kind = llvm::any_of(*probabilities, [](double x) { return std::isnan(x); }) ? 1
                  : llvm::all_of(*probabilities, isZero)                               ? 0
                                                                                       : 2;
  ++counts[rank][kind];
  empty.push_back({std::move(row), rank});
}

/// Returns whether `values` are a constant factor times a number of each sample.
bool RowReductions::agrees(ArrayRef<double> values, function_ref<double(const Sample &)> number,
                           double &factor) const {
  std::optional<double> known;
  unsigned rows = 0;
  for (auto [value, sample] : llvm::zip_equal(values, samples)) {
    double expected = number(sample);
    if (std::isnan(expected))
      continue;
    if (!known) {
      if (std::fabs(expected) < kLeastNumber)
        continue;
      known = value / expected;
    }
    if (!areClose(value, *known * expected))
      return false;
    ++rows;
  }
  if (rows < kLeastRows || *known == 0)
    return false;
  factor = *known;
  return true;
}

RowReduction RowReductions::classify(const CodeNode *node) const {
  SmallVector<double> values;
  for (const Sample &sample : samples) {
    std::optional<ScalarValue> value = sample.row->computeScalar(node);
    if (!value)
      return {};
    values.push_back(std::holds_alternative<double>(*value)
                         ? std::get<double>(*value)
                         : static_cast<double>(std::get<APInt>(*value).getZExtValue()));
  }
  RowReduction found;
  if (isa<FloatType>(node->type)) {
    auto tryKind = [&](Kind kind, int power, function_ref<double(const Sample &)> number) {
      if (!agrees(values, number, found.factor))
        return false;
      found.kind = kind;
      found.power = power;
      return true;
    };
    if (tryKind(Kind::maximum, 0, [](const Sample &sample) { return sample.maximum; }) ||
        tryKind(Kind::sum, 0, [](const Sample &sample) { return sample.sum; }))
      return found;
    // The gradient of a division of exponentials by their sum has the sum in its denominator.
    for (int power : {0, -1, -2, 1})
      if (tryKind(Kind::product, power,
                  [&](const Sample &sample) { return sample.product * std::pow(sample.sum, power); }))
        return found;
    return found;
  }
  if (!node->type.isInteger(1) || values.size() < kLeastRows || empty.size() < kLeastRows ||
      !llvm::all_equal(values))
    return found;
  bool isOther = llvm::all_of(empty, [&](const EmptyRow &of) {
    std::optional<ScalarValue> value = of.row->computeScalar(node);
    return value && std::get<APInt>(*value).isZero() == (values.front() != 0);
  });
  if (isOther)
    found = {Kind::emptiness, values.front() == 0 ? 1.0 : -1.0};
  return found;
}

bool RowReductions::isZero(const CodeNode *node) const {
  unsigned rows = 0;
  for (const Sample &sample : samples) {
    if (!(sample.gradient >= kLeastNumber) || std::isnan(sample.product))
      continue;
    std::optional<SmallVector<double>> values = sample.row->compute(node);
    if (!values ||
        !llvm::all_of(*values, [&](double x) { return std::fabs(x) <= kRounding * sample.gradient; }))
      return false;
    ++rows;
  }
  return rows >= kLeastRows;
}

bool RowReductions::hasFactor() const {
  return samples.size() >= kLeastRows && llvm::all_of(samples, [&](const Sample &sample) {
           std::optional<SmallVector<double>> whole = sample.row->compute(site.probability),
                                              softmax = sample.row->compute(site.form.softmax),
                                              factors = sample.row->compute(site.probability,
                                                                            {{site.form.softmax, 1.0}});
           if (!whole || !softmax || !factors)
             return false;
           for (auto [factor, part] : llvm::zip_equal(*factors, *softmax))
             factor *= part;
           return areSame(*whole, *factors);
         });
}

bool RowReductions::isSameOnEmptyRows(const CodeNode *node,
                                      ArrayRef<std::pair<const CodeNode *, RowReduction>> reductions) const {
  SmallVector<TrialRow::FixedNode> fixed;
  for (auto [reduction, of] : reductions) {
    if (of.kind == Kind::emptiness)
      fixed.push_back({reduction, APInt(1, of.factor > 0)});
    else
      fixed.push_back({reduction, of.kind == Kind::maximum ? of.factor * -INFINITY : 0.0});
  }
  return llvm::all_of(empty, [&](const EmptyRow &of) {
    if (of.rank != decisive)
      return true;
    std::optional<SmallVector<double>> whole = of.row->compute(node), other = of.row->compute(node, fixed);
    return whole && other && areSame(*whole, *other);
  });
}
