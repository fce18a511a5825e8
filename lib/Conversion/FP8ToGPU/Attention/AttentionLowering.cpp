// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers attention: divides it into kernels, chooses their tiles, and launches them.

#include "AttentionLowering.h"
#include "AttentionKernel.h"
#include "fp8/Dialect/FP8/IR/KernelTime.h"
#include "fp8/Dialect/FP8/IR/Marks.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace fp8;

/// Registers of a thread that sums, scores and kept operands may take: others hold addresses and what is in
/// flight.
static constexpr int64_t kMostRegisters = 176;
static constexpr int64_t kMostWarps = 8, kMostStep = 64, kLeastStep = 16;
/// Steps of fewer rows cost more than the scores that two kernels compute twice.
static constexpr int64_t kLeastMergedStep = 32;

/// Returns the registers that the plan's sums, and the scores of a step, take in a thread.
static int64_t countRegisters(const AttentionView &view, const AttentionPlan &plan) {
  int64_t count = plan.step / 2 * int64_t(plan.own.size());
  if (plan.isOfScores)
    return count + plan.step / 2;
  for (const AttentionResult &result : plan.results)
    count += llvm::alignTo(view.sizes[result.streamed ? view.width : view.depth].known, 16) / 2;
  return plan.keepsOwn ? count + llvm::alignTo(view.sizes[view.depth].known, 16) / 4 : count;
}

/// Chooses the rows of a tile and of a step: as many own rows as there are, because each tile reads all
/// streamed rows again, then as many streamed ones as registers and shared memory have room for. Fewer than
/// four warps leave some of a multiprocessor's four schedulers idle: one stage is better than that.
static void chooseTiles(const AttentionView &view, const Chip &chip, AttentionPlan &plan) {
  const KernelNumber &rows = view.sizes[plan.isTransposed ? view.keys : view.queries];
  int64_t most = kMostWarps, least = plan.usesWgmma ? 4 : 1;
  while (most > least && rows.isKnown() && most / 2 * 16 >= rows.known)
    most /= 2;
  auto fits = [&] {
    return countRegisters(view, plan) <= kMostRegisters &&
           AttentionKernel::countShared(view, plan) <= chip.sharedBytes;
  };
  int64_t mostStages = plan.isOfScores ? 1 : 2;
  for (plan.warps = most; plan.warps >= least; plan.warps /= 2)
    for (plan.stages = mostStages; plan.stages >= (plan.warps <= 4 ? 1 : mostStages); --plan.stages)
      for (plan.step = kMostStep; plan.step >= kLeastStep; plan.step /= 2)
        for (bool keepsOwn : {true, false}) {
          plan.keepsOwn = keepsOwn && plan.isForward && !plan.usesWgmma;
          if (fits())
            return;
        }
  plan.warps = least;
  plan.step = kLeastStep;
  plan.stages = 1;
}

/// Returns whether threads have registers for the results of both plans at once, and the same blocks.
static bool canMerge(const AttentionView &view, const AttentionPlan &lhs, const AttentionPlan &rhs) {
  AttentionPlan both = lhs;
  both.results.append(rhs.results);
  both.step = kLeastMergedStep;
  return lhs.gridDims == rhs.gridDims && countRegisters(view, both) <= kMostRegisters;
}

/// Returns the marks of the matmuls `numbers`, by their number among the sites of the operation, for the
/// report.
static ArrayAttr markMatmuls(const AttentionView &view, StringRef code, ArrayRef<unsigned> numbers) {
  Builder builder(view.op->getContext());
  SmallVector<Attribute> marks;
  bool isForward = view.operands.size() == 3;
  for (unsigned number : numbers) {
    auto site = view.sites ? cast<MatmulSiteAttr>(view.sites[number]) : MatmulSiteAttr();
    StringRef name = site && site.getSite() ? site.getSite().getValue() : "";
    Role role = site ? site.getRole() : Role::other;
    NamedAttrList fields;
    fields.set("site", builder.getStringAttr(name));
    fields.set("role", builder.getStringAttr(stringifyRole(role)));
    fields.set("code", builder.getStringAttr(code + ", in fused attention"));
    bool hasDepth = isForward ? number == 0 : number == 0 || number > 2; // else width
    double operations = 2;
    SmallVector<unsigned> loops(view.dims.outer);
    loops.append({view.keys, hasDepth ? view.depth : view.width});
    for (unsigned dim : loops)
      operations *= view.sizes[dim].isKnown() ? double(view.sizes[dim].known) : -INFINITY;
    if (operations >= 0 && operations < 0x1p62)
      fields.set("operations", builder.getI64IntegerAttr(static_cast<int64_t>(operations)));
    marks.push_back(fields.getDictionary(builder.getContext()));
  }
  return builder.getArrayAttr(marks);
}

/// Returns the steps of streamed rows that all blocks of own rows of one head take together. Limits that
/// depend on an input count as if they held.
static int64_t countSteps(const AttentionView &view, const AttentionPlan &plan, int64_t own,
                          int64_t streamed) {
  std::optional<int64_t> from = view.firstSeen, to = view.endSeen;
  if (plan.isTransposed) { // key j is seen by query i where i + firstSeen <= j < i + endSeen
    from = view.endSeen ? std::optional(1 - *view.endSeen) : std::nullopt;
    to = view.firstSeen ? std::optional(1 - *view.firstSeen) : std::nullopt;
  }
  int64_t steps = 0;
  for (int64_t first = 0; first < own; first += plan.countRows()) {
    int64_t last = std::min(own, first + plan.countRows()) - 1;
    int64_t start = from ? std::max<int64_t>(0, first + *from) : 0;
    int64_t end = to ? std::min(streamed, last + *to) : streamed;
    if (start < end)
      steps += llvm::divideCeil(end, plan.step) - start / plan.step;
  }
  return steps;
}

/// Adds the clocks of a plan to the cost of its launch, if all sizes are known.
static void addAttentionClocks(gpu::LaunchFuncOp launch, const Chip &chip, const AttentionView &view,
                               const AttentionPlan &plan) {
  if (!llvm::all_of(view.sizes, [](const KernelNumber &size) { return size.isKnown(); }))
    return;
  int64_t blocks = 1, sums = 1;
  for (unsigned dim : plan.gridDims)
    blocks *= view.sizes[dim].known;
  for (unsigned dim : plan.loopDims)
    sums *= view.sizes[dim].known;
  int64_t queries = view.sizes[view.queries].known, keys = view.sizes[view.keys].known;
  int64_t own = plan.isTransposed ? keys : queries, streamed = plan.isTransposed ? queries : keys;
  AttentionWork work;
  work.steps = blocks * sums * countSteps(view, plan, own, streamed);
  work.blocks = blocks * llvm::divideCeil(own, plan.countRows());
  if (plan.isOfScores)
    work.blocks *= llvm::divideCeil(streamed, plan.step);
  work.rows = plan.countRows();
  work.stepRows = plan.step;
  work.matmuls = static_cast<int64_t>(plan.own.size() + (plan.isOfScores ? 0 : plan.results.size()));
  work.headElements = (view.sizes[view.depth].known + view.sizes[view.width].known) / 2;
  KernelCost cost = getKernelCost(launch);
  cost.matmul = countAttentionClocks(chip, work);
  setKernelCost(launch, cost);
}

/// Builds and launches the kernel of a plan. `matmuls`: the numbers of those that it stands for in the
/// report.
static void launchPlan(OpBuilder &builder, AttentionView &view, AttentionPlan plan, StringRef name,
                       ArrayRef<unsigned> matmuls, const KernelArguments &arguments,
                       LoweringContext &context) {
  Location loc = view.op->getLoc();
  plan.usesWgmma = context.chip.family == MatmulFamily::wgmma;
  chooseTiles(view, context.chip, plan);
  Type type = view.operands[0].getElementType();
  auto site = view.sites ? cast<MatmulSiteAttr>(view.sites[0]) : MatmulSiteAttr();
  StringRef siteName = site && site.getSite() ? site.getSite().getValue() : "";
  KernelSpec spec;
  spec.name = (name + "_" + siteName).str();
  spec.arguments = arguments.types;
  spec.threads = plan.countThreads();
  spec.sharedBytes = AttentionKernel::countShared(view, plan);
  spec.instruction =
      plan.usesWgmma ? nameInstruction(context.chip, MatmulFamily::wgmma, type, type, "64", Twine(plan.step))
                     : nameInstruction(context.chip, MatmulFamily::mma, type, type, "16", "8");
  spec.kind = "attention";
  func::FuncOp kernel =
      context.kernels.build(loc, spec, [&](KernelBuilder &b) { AttentionKernel(b, view, plan).build(); });
  unsigned ownDim = plan.isTransposed ? view.keys : view.queries;
  Value blocks = builder.createOrFold<arith::CeilDivUIOp>(loc, view.hostSizes[ownDim],
                                                          constantIndex(builder, loc, plan.countRows()));
  if (plan.isOfScores)
    blocks = builder.createOrFold<arith::MulIOp>(
        loc, blocks,
        builder.createOrFold<arith::CeilDivUIOp>(loc, view.hostSizes[view.keys],
                                                 constantIndex(builder, loc, plan.step)));
  for (unsigned dim : plan.gridDims)
    blocks = builder.createOrFold<arith::MulIOp>(loc, blocks, view.hostSizes[dim]);
  auto launch = launchKernel(builder, loc, kernel, blocks, arguments.operands);
  markLaunch(launch, siteName, markMatmuls(view, spec.instruction, matmuls));
  addAttentionClocks(launch, context.chip, view, plan);
}

/// Tells which operands are copied to shared memory element by element.
static void remarkCopies(const AttentionView &view) {
  StringRef names[] = {"query", "key", "value", "gradient of the output"};
  for (auto [name, tensor] : llvm::zip(names, view.operands)) {
    unsigned column = tensor.map.isFunctionOfDim(view.depth) ? view.depth : view.width;
    if (tensor.getAlignmentAlong(column) != kAccessBytes)
      remark::missed(view.op->getLoc(),
                     remark::RemarkOpts::name("StridedAttention").category("fp8-attention"))
          << "the " + name.str() +
                 " of attention is copied element by element: its rows are not 16-byte "
                 "multiples of adjacent elements";
  }
}

/// Returns why kernels cannot compute the operation; empty if they can. `fp8-fuse-attention` makes none of
/// these.
static std::string explainOperands(const AttentionView &view) {
  Type type = view.operands[0].getElementType();
  for (const AttentionTensor &operand : view.operands)
    if (operand.getElementType() != type || !isa<BFloat16Type, Float16Type>(type))
      return "query, key, value and the gradient of the output must be bf16 or f16, all of one type";
  for (const AttentionTensor &out : view.outs)
    if (out.getElementType().isF64())
      return "results must have at most 32 bits";
  for (unsigned dim : {view.depth, view.width}) {
    const KernelNumber &size = view.sizes[dim];
    if (!size.isKnown() || size.known % kHeadMultiple != 0 || size.known < kHeadMultiple ||
        size.known > kMostHeadElements)
      return ("depth and width must be static multiples of " + Twine(kHeadMultiple) + ", at most " +
              Twine(kMostHeadElements))
          .str();
  }
  auto hasQueries = [&](const AttentionTensor &tensor) { return tensor.map.isFunctionOfDim(view.queries); };
  if (hasQueries(view.operands[1]) || hasQueries(view.operands[2]) ||
      (view.operands.size() > 3 && (hasQueries(view.outs[1]) || hasQueries(view.outs[2]))))
    return "one outer dimension must be neither of the keys and values nor of their gradients";
  for (unsigned i = 3; view.operands.size() > 3 && i < view.outs.size(); ++i)
    if (!hasQueries(view.outs[i]) && view.sizes[view.queries].known != 1)
      return "one outer dimension must be of all further results, and neither of the keys and values nor of "
             "their gradients";
  return "";
}

/// Returns whether there are kernels; reports why not, and tells of slow copies.
static bool canLower(const AttentionView &view, LoweringContext &context) {
  std::string reason = explainOperands(view);
  if (!reason.empty()) {
    view.op->emitError() << "has no kernel: " << reason;
    context.hasErrors = true;
    return false;
  }
  remarkCopies(view);
  return true;
}

/// Divides the outer dimensions besides the queries into those that a result has and those that it sums over.
static void divideDims(const AttentionView &view, const AttentionTensor &out, AttentionPlan &plan) {
  for (unsigned dim : view.dims.outer)
    if (dim != view.queries)
      (out.map.isFunctionOfDim(dim) ? plan.gridDims : plan.loopDims).push_back(dim);
}

/// Returns whether value number `number` that the code yields depends on the gradient of the probability.
static bool dependsOnGradient(const AttentionView &view, unsigned number) {
  Block &block = view.code->front();
  BlockArgument gradient = block.getArgument(view.dims.outer.size() + 2);
  Value value = block.getTerminator()->getOperand(number);
  SetVector<Operation *> slice;
  getForwardSlice(gradient, &slice);
  return value == gradient || (value.getDefiningOp() && slice.contains(value.getDefiningOp()));
}

bool fp8::lowerOnlineAttention(OpBuilder &builder, OnlineAttentionOp op, LoweringContext &context) {
  KernelArguments arguments(builder, op.getLoc());
  AttentionView view(builder, op, arguments);
  if (!canLower(view, context))
    return false;
  AttentionPlan plan;
  plan.own = {0};
  plan.streamed = {1, 2};
  plan.results = {{/*out=*/0, /*code=*/0, /*streamed=*/1}};
  plan.isForward = true;
  plan.isBaseTwo = op.getBaseTwo();
  plan.zeroEmptyRows = op.getZeroEmptyRows();
  plan.statistics = op.getOuts().size() > 1 ? &op.getStatistics() : nullptr;
  if (std::optional<uint64_t> sink = op.getSink())
    plan.sink = static_cast<unsigned>(*sink);
  divideDims(view, view.outs[0], plan);
  launchPlan(builder, view, plan, "attention", {0, 1}, arguments, context);
  return true;
}

bool fp8::lowerOnlineAttentionGrad(OpBuilder &builder, OnlineAttentionGradOp op, LoweringContext &context) {
  KernelArguments arguments(builder, op.getLoc());
  AttentionView view(builder, op, arguments);
  if (!canLower(view, context))
    return false;
  AttentionPlan ofQuery;
  ofQuery.own = {0, 3};
  ofQuery.streamed = {1, 2};
  ofQuery.results = {{/*out=*/0, /*code=*/1, /*streamed=*/0}};
  divideDims(view, view.outs[0], ofQuery);
  auto hasKeys = [&](unsigned i) { return view.outs[i].map.isFunctionOfDim(view.keys); };
  for (unsigned i = OnlineAttentionGradOp::kNumMainResults; i < view.outs.size(); ++i)
    if (!hasKeys(i))
      ofQuery.rowSums.push_back({/*out=*/i, /*code=*/i - 1});
  launchPlan(builder, view, ofQuery, "attention_query_grad", {0, 1, 3}, arguments, context);

  for (unsigned i = OnlineAttentionGradOp::kNumMainResults; i < view.outs.size(); ++i) {
    if (!hasKeys(i))
      continue;
    AttentionPlan ofScores;
    ofScores.isOfScores = true;
    ofScores.own = ofQuery.own;
    ofScores.streamed = ofQuery.streamed;
    ofScores.results = {{/*out=*/i, /*code=*/i - 1, /*streamed=*/0}};
    divideDims(view, view.outs[i], ofScores);
    launchPlan(builder, view, ofScores, ("attention_score_grad" + Twine(i - 2)).str(), {}, arguments,
               context);
  }

  AttentionPlan ofValue;
  ofValue.isTransposed = true;
  ofValue.own = {1, 2};
  ofValue.streamed = {0, 3};
  AttentionPlan ofKey = ofValue;
  divideDims(view, view.outs[2], ofValue);
  divideDims(view, view.outs[1], ofKey);
  ofValue.results = {{/*out=*/2, /*code=*/0, /*streamed=*/1}};
  ofKey.results = {{/*out=*/1, /*code=*/1, /*streamed=*/0}};
  if (canMerge(view, ofKey, ofValue)) {
    ofValue.results.append(ofKey.results);
    launchPlan(builder, view, ofValue, "attention_key_grad", {2, 4}, arguments, context);
    return true;
  }
  if (!dependsOnGradient(view, /*number=*/0))
    ofValue.own = {1};
  launchPlan(builder, view, ofValue, "attention_value_grad", {2}, arguments, context);
  launchPlan(builder, view, ofKey, "attention_key_grad", {4}, arguments, context);
  return true;
}
