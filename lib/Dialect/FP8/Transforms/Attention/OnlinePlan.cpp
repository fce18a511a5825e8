// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every reduction of a row must be a number that kernels have: the maximum of the scores, the sum of their
// exponentials, and, in the backward pass, the sum of probabilities times gradients. All that follows from
// them and from one score is the program's own code.

#include "OnlinePlan.h"
#include "WidenedOperand.h"
#include "fp8/Dialect/FP8/IR/Chips.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;
using Kind = RowReduction::Kind;

static constexpr Kind kNumbers[] = {Kind::maximum, Kind::sum, Kind::product};

OnlinePlan::OnlinePlan(const AttentionSite &site, const AttentionParts &parts,
                       ArrayRef<const CodeNode *> statistics, ArrayRef<const CodeNode *> gradientStatistics)
    : site(site), parts(parts), statistics(statistics), gradientStatistics(gradientStatistics),
      score(*site.code, site.keys, {site.raw, site.form.softmax}, {site.form.score, site.probability}),
      sink(*site.code, site.keys, {},
           site.form.sink ? ArrayRef(site.form.sink) : ArrayRef<const CodeNode *>()) {}

/// Chooses the inputs of a plan. Returns why a kernel cannot compute its outputs from them and its matmuls.
static std::string chooseInputs(RowsPlan &plan) {
  if (std::string reason = plan.chooseInputs(); !reason.empty())
    return reason;
  return explainElements(plan.getOutputs(), [&](const CodeNode *node) {
    return llvm::is_contained(plan.getMatmuls(), node) || plan.getInputNumbers().contains(node);
  });
}

std::string OnlinePlan::plan() {
  findOperands();
  if (std::string reason = explainOperands(); !reason.empty())
    return reason;
  rows.emplace(site, parts.probabilityGradNode);
  if (std::string reason = planForward(); !reason.empty())
    return reason;
  if (std::string reason = chooseInputs(sink); !reason.empty())
    return reason;
  if (std::string reason = planStatistics(); !reason.empty())
    return reason;
  if (!parts.hasGradients)
    return "";
  if (std::string reason = planGradientStatistics(); !reason.empty())
    return reason;
  return planBackward();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

std::string OnlinePlan::explainSize(StringRef name, const Operand &operand, unsigned dim) const {
  unsigned position = *operand.map.getResultPosition(getAffineDimExpr(dim, operand.map.getContext()));
  int64_t size = cast<RankedTensorType>(operand.tensor.getType()).getDimSize(position);
  std::string subject = ("the " + name + " of its heads is ").str();
  if (ShapedType::isDynamic(size))
    return subject + "not known when it is compiled";
  if (size > kMostHeadElements)
    return subject + std::to_string(size) + ": kernels have at most " + std::to_string(kMostHeadElements);
  if (size % kHeadMultiple != 0)
    return subject + std::to_string(size) + ": kernels have multiples of " + std::to_string(kHeadMultiple);
  return "";
}

void OnlinePlan::findOperands() {
  SmallVector<Operand> own{parts.query, parts.key, parts.value};
  if (parts.hasGradients)
    own.push_back(parts.outputGrad);
  for (const Operand &operand : own) {
    WidenedOperand widened = findSource(operand);
    operands.push_back(widened.source);
    factors.push_back(widened.factor);
  }
}

std::string OnlinePlan::explainOperands() const {
  Type type = getElementTypeOrSelf(operands.front().tensor);
  for (const Operand &operand : operands)
    if (getElementTypeOrSelf(operand.tensor) != type)
      return "its operands are of different types";
  if (type.isF32())
    return "its operands are f32: tensor cores would round them to TF32";
  if (!isa<BFloat16Type, Float16Type>(type)) {
    std::string reason = "its operands are ";
    llvm::raw_string_ostream(reason) << type << ": kernels have bf16 and f16";
    return reason;
  }
  // The sum of probability times gradient is computed from the output.
  auto countDigits = [](Type of) { return cast<FloatType>(of).getFPMantissaWidth(); };
  if (parts.hasGradients && countDigits(getElementTypeOrSelf(parts.output.tensor)) < countDigits(type))
    return "its output has fewer digits than its operands, and its backward pass would be computed from it";
  // Scores are multiplied by both factors, and the gradient of one operand by the factor of the other.
  if (factors[2] != 1 || (parts.hasGradients && (factors[3] != 1 || factors[0] != factors[1])))
    return "its operands are scaled by different constants";
  const AttentionDims &dims = parts.dims;
  if (dims.keys.size() != 1 || dims.depth.size() != 1 || dims.width.size() != 1)
    return "it has not exactly one dimension each of keys, depth and width";
  if (std::string reason = explainSize("depth", parts.key, dims.depth.front()); !reason.empty())
    return reason;
  if (std::string reason = explainSize("width", parts.value, dims.width.front()); !reason.empty())
    return reason;
  auto isOfQueries = [&](unsigned dim) {
    bool isOfKeys = parts.key.map.isFunctionOfDim(dim) || parts.value.map.isFunctionOfDim(dim);
    return !isOfKeys && !(parts.hasGradients && (parts.keyGrad.map.isFunctionOfDim(dim) ||
                                                 parts.valueGrad.map.isFunctionOfDim(dim)));
  };
  SmallVector<unsigned> queries = llvm::filter_to_vector(dims.outer, isOfQueries);
  if (queries.empty())
    return "each of its queries has keys or values of its own";
  auto shape = cast<RankedTensorType>(site.probabilities.getType()).getShape();
  for (const Operand &further : parts.further)
    llvm::erase_if(queries,
                   [&](unsigned dim) { return shape[dim] != 1 && !further.map.isFunctionOfDim(dim); });
  if (queries.empty())
    return "its backward pass sums gradients of scores over its queries, as for a bias that all of them "
           "share, and kernels do not";
  return "";
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

OnlinePlan::Reductions OnlinePlan::findReductions(RowsPlan &from, ArrayRef<const CodeNode *> nodes,
                                                  bool takesZeros) const {
  Reductions found;
  llvm::SmallPtrSet<const CodeNode *, 32> seen;
  auto visit = [&](auto &self, const CodeNode *node) -> void {
    if (!seen.insert(node).second || llvm::is_contained(from.getMatmuls(), node) ||
        !from.dependsOnMatmuls(node))
      return;
    bool isFloat = isa<FloatType>(node->type), isReduction = node->kind == CodeNode::Kind::reduction;
    // A sink is taken into the maximum and the sum of the keys by further operations.
    bool mayBeNumber = isReduction || (site.form.sink && isFloat && !node->isFunctionOf(site.keys.front()));
    if (takesZeros && isFloat && rows->isZero(node))
      found.push_back({node, {Kind::zero}});
    else if (RowReduction number = mayBeNumber ? rows->classify(node) : RowReduction();
             isReduction || number.kind != Kind::unknown)
      found.push_back({node, number});
    else
      for (const CodeNode *operand : node->operands)
        self(self, operand);
  };
  for (const CodeNode *node : nodes)
    visit(visit, node);
  return found;
}

std::string OnlinePlan::explainReductions(const Reductions &found, Kind last, StringRef subject) const {
  for (auto [node, reduction] : found) {
    if (reduction.kind == Kind::zero)
      continue;
    bool isKnown = reduction.kind == Kind::emptiness || reduction.kind <= last;
    if (!isKnown || node->isFunctionOf(site.keys.front()))
      return (subject + " reduces its rows to another number than a kernel does").str();
  }
  return "";
}

bool OnlinePlan::sumsProducts() const {
  return llvm::any_of(rowGradientReductions,
                      [](const auto &reduction) { return reduction.second.kind == Kind::product; });
}

bool OnlinePlan::readsInBackward(Kind kind) const {
  auto all = llvm::concat<const Reductions::value_type>(gradientReductions, rowGradientReductions);
  return llvm::any_of(all, [&](const auto &reduction) {
    return reduction.second.kind == kind ||
           (kind == Kind::maximum && reduction.second.kind == Kind::emptiness) ||
           (kind == Kind::sum && reduction.second.power != 0);
  });
}

std::optional<unsigned> OnlinePlan::findStatistic(Kind kind) const {
  for (auto [number, statistic] : llvm::enumerate(statistics))
    for (auto [node, reduction] : statisticReductions)
      if (node == statistic && reduction.kind == kind && static_cast<float>(reduction.factor) == 1 &&
          node->type.isF32())
        return number;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

std::string OnlinePlan::planForward() {
  if (!site.form.isSafe)
    return "its softmax subtracts no maximum, and a kernel's does";
  if (!findReductions(score, site.probability).empty() || !rows->hasFactor())
    return "its probabilities are more than a factor times their softmax";
  if (rows->getEmptyRows() == EmptyRows::mixed)
    return "its rows in which all keys are hidden have neither the probability 0 nor NaN";
  return chooseInputs(score);
}

std::string OnlinePlan::planStatistics() {
  RowsPlan from(*site.code, site.keys, site.raw, statistics);
  statisticReductions = findReductions(from, statistics);
  if (std::string reason = explainReductions(statisticReductions, Kind::sum, "a statistic of its rows");
      !reason.empty())
    return reason;
  return explainElements(statistics, [&](const CodeNode *node) {
    return llvm::any_of(statisticReductions, [&](const auto &reduction) { return reduction.first == node; });
  });
}

std::string OnlinePlan::planBackward() {
  SmallVector<const CodeNode *> outputs{parts.valueRow, parts.scoreGradRow};
  llvm::append_range(outputs, parts.furtherRows);
  if (sumsProducts())
    outputs.push_back(site.probability);
  SmallVector<const CodeNode *> given{site.raw, parts.probabilityGradNode};
  RowsPlan from(*site.code, site.keys, given, outputs);
  auto explain = [&] { return explainReductions(gradientReductions, Kind::product, "its backward pass"); };
  gradientReductions = findReductions(from, outputs);
  if (!explain().empty())
    gradientReductions = findReductions(from, outputs, /*takesZeros=*/true);
  if (std::string reason = explain(); !reason.empty())
    return reason;
  if (rows->getEmptyRows() == EmptyRows::zero)
    for (const CodeNode *output : outputs)
      if (!rows->isSameOnEmptyRows(output, gradientReductions))
        return "its backward pass has other gradients than a kernel's for rows in which all keys are hidden";
  for (auto &[node, reduction] : gradientReductions)
    given.push_back(node);
  elements = std::make_unique<RowsPlan>(*site.code, site.keys, given, outputs);
  return chooseInputs(*elements);
}

std::string OnlinePlan::planGradientStatistics() {
  SmallVector<const CodeNode *> given{site.raw, parts.probabilityGradNode};
  RowsPlan from(*site.code, site.keys, given, gradientStatistics);
  auto explain = [&] {
    return explainReductions(rowGradientReductions, Kind::product, "a statistic of its backward pass");
  };
  rowGradientReductions = findReductions(from, gradientStatistics);
  if (!explain().empty())
    rowGradientReductions = findReductions(from, gradientStatistics, /*takesZeros=*/true);
  if (std::string reason = explain(); !reason.empty())
    return reason;
  for (auto &[node, reduction] : rowGradientReductions)
    given.push_back(node);
  rowGradients = std::make_unique<RowsPlan>(*site.code, site.keys, given, gradientStatistics);
  return chooseInputs(*rowGradients);
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Returns the f32 constant `number`.
static Value writeFloat(OpBuilder &builder, Location loc, double number) {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(number)));
}

/// Writes `value` · `factor`.
static Value writeProduct(OpBuilder &builder, Location loc, Value value, double factor) {
  return factor == 1
             ? value
             : arith::MulFOp::create(builder, loc, value, writeFloat(builder, loc, factor)).getResult();
}

/// Writes a reduction of `number`, its value in a kernel; `sum` is that of the exponentials, where it is
/// needed.
static Value writeReduction(OpBuilder &builder, Location loc, const RowReduction &reduction, Value number,
                            Value sum = {}) {
  if (reduction.kind == Kind::emptiness) {
    auto predicate = reduction.factor > 0 ? arith::CmpFPredicate::OEQ : arith::CmpFPredicate::UNE;
    return arith::CmpFOp::create(builder, loc, predicate, number, writeFloat(builder, loc, -INFINITY));
  }
  for (int power = reduction.power; power < 0; ++power)
    number = arith::DivFOp::create(builder, loc, number, sum);
  for (int power = reduction.power; power > 0; --power)
    number = arith::MulFOp::create(builder, loc, number, sum);
  if (static_cast<float>(reduction.factor) == 1)
    return number;
  if (static_cast<float>(reduction.factor) == -1)
    return arith::NegFOp::create(builder, loc, number);
  return arith::MulFOp::create(builder, loc, number, writeFloat(builder, loc, reduction.factor));
}

void OnlinePlan::writeScore(OpBuilder &builder, Block *block) const {
  SmallVector<unsigned> dims(parts.dims.outer.begin(), parts.dims.outer.end());
  dims.push_back(site.keys.front());
  Location loc = block->getParentOp()->getLoc();
  ElementsWriter writer(builder, block, dims);
  writer.set(site.raw, writeProduct(builder, loc, block->getArgument(dims.size()), factors[0] * factors[1]));
  writer.setInputs(score, dims.size() + 1);
  Value x = writer.write(site.form.score);
  writer.set(site.form.softmax, writeFloat(builder, loc, 1));
  YieldOp::create(builder, loc, x, writer.write(site.probability));
}

void OnlinePlan::writeStatistics(OpBuilder &builder, Block *block, ArrayRef<Kind> further) const {
  SmallVector<unsigned> dims(parts.dims.outer.begin(), parts.dims.outer.end());
  Location loc = block->getParentOp()->getLoc();
  ElementsWriter writer(builder, block, dims);
  auto getNumber = [&](Kind kind) { return block->getArgument(dims.size() + (kind == Kind::sum)); };
  for (auto [node, reduction] : statisticReductions)
    writer.set(node, writeReduction(builder, loc, reduction, getNumber(reduction.kind)));
  SmallVector<Value> yielded;
  for (const CodeNode *statistic : statistics)
    yielded.push_back(narrow(builder, loc, writer.write(statistic), statistic->type));
  for (Kind kind : further)
    yielded.push_back(getNumber(kind));
  YieldOp::create(builder, loc, yielded.front(), ArrayRef(yielded).drop_front());
}

/// Gives reductions of the backward pass their values. `arguments`: the numbers of the row that are read, in
/// the order of their kinds.
void OnlinePlan::setNumbers(OpBuilder &builder, Location loc, ElementsWriter &writer,
                            const Reductions &reductions, ValueRange arguments) const {
  llvm::SmallDenseMap<int, Value> numbers;
  for (Kind kind : kNumbers)
    if (readsInBackward(kind)) {
      numbers[int(kind)] = arguments.front();
      arguments = arguments.drop_front();
    }
  for (auto [node, reduction] : reductions) {
    if (reduction.kind == Kind::zero) {
      writer.set(node, writeFloat(builder, loc, 0));
      continue;
    }
    Kind of = reduction.kind == Kind::emptiness ? Kind::maximum : reduction.kind;
    writer.set(node,
               writeReduction(builder, loc, reduction, numbers[int(of)], numbers.lookup(int(Kind::sum))));
  }
}

/// Returns a writer of a block whose loops are the dimensions `dims`, and whose first arguments are the
/// inputs of `plan`.
static ElementsWriter beginElements(OpBuilder &builder, Block *block, ArrayRef<unsigned> dims,
                                    const RowsPlan &plan) {
  ElementsWriter writer(builder, block, {});
  for (auto [loop, dim] : llvm::enumerate(dims))
    writer.setIndex(dim, linalg::IndexOp::create(builder, block->getParentOp()->getLoc(), loop));
  writer.setInputs(plan, 0);
  return writer;
}

Value OnlinePlan::writeSink(OpBuilder &builder, Block *block, ArrayRef<unsigned> dims) const {
  return beginElements(builder, block, dims, sink).write(sink.getOutputs().front());
}

Value OnlinePlan::writeGradientStatistic(OpBuilder &builder, Block *block, unsigned number,
                                         ArrayRef<unsigned> dims) const {
  const CodeNode *statistic = gradientStatistics[number];
  Location loc = block->getParentOp()->getLoc();
  ElementsWriter writer = beginElements(builder, block, dims, *rowGradients);
  setNumbers(builder, loc, writer, rowGradientReductions,
             block->getArguments().drop_front(rowGradients->inputs.size()));
  return narrow(builder, loc, writer.write(statistic), statistic->type);
}

void OnlinePlan::writeElements(OpBuilder &builder, Block *block) const {
  SmallVector<unsigned> dims(parts.dims.outer.begin(), parts.dims.outer.end());
  dims.push_back(site.keys.front());
  Location loc = block->getParentOp()->getLoc();
  ElementsWriter writer(builder, block, dims);
  writer.set(site.raw, writeProduct(builder, loc, block->getArgument(dims.size()), factors[0] * factors[1]));
  writer.set(parts.probabilityGradNode, block->getArgument(dims.size() + 1));
  writer.setInputs(*elements, dims.size() + 2);
  setNumbers(builder, loc, writer, gradientReductions,
             block->getArguments().drop_front(dims.size() + 2 + elements->inputs.size()));
  Value p = writer.write(parts.valueRow), d = writer.write(parts.scoreGradRow);
  SmallVector<Value> yielded{writeProduct(builder, loc, d, factors[0])};
  for (const CodeNode *further : parts.furtherRows)
    yielded.push_back(writer.write(further));
  if (sumsProducts())
    yielded.push_back(arith::MulFOp::create(builder, loc, writer.write(site.probability),
                                            block->getArgument(dims.size() + 1)));
  YieldOp::create(builder, loc, p, yielded);
}
