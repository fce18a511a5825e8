// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces one place of attention, and its backward pass, by operations. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONFUSION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONFUSION_H

#include "AttentionParts.h"
#include "OnlinePlan.h"
#include "RowsRegion.h"
#include "fp8/Analysis/Attention/VisibleKeys.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

namespace fp8::detail {

/// Fuses one place.
class AttentionFusion {
public:
  /// `isOnline`: as operations whose softmax is computed online.
  AttentionFusion(mlir::RewriterBase &rewriter, AttentionSite &site, bool isOnline)
      : rewriter(rewriter), site(site), readers(site), isOnline(isOnline) {}

  /// Returns why the place stays as it is; nothing if `build` may fuse it.
  std::string plan();
  void build();
  /// Returns the bytes of scores, probabilities and their gradients, each once; nothing if a size is dynamic.
  std::optional<int64_t> countScoreBytes() const;
  /// Returns the share of scores that are known to be hidden by a mask; nothing if a size is dynamic. After
  /// `build`.
  std::optional<double> getHiddenShare() const;
  std::string describeMask() const;

private:
  /// The operands of an operation; maps are in their order.
  struct Operands {
    llvm::SmallVector<mlir::Value> tensors, inputs, outs;
    llvm::SmallVector<mlir::AffineMap> maps;
    /// Adds a further input or out.
    void addInput(const Operand &input);
    void addOut(const Operand &out);
  };

  std::string planForward();
  std::string planBackward();
  std::string planOnline();
  std::string planStatistics();
  std::string explainStatisticReaders() const;
  void findFirstGradient();
  bool isKnownBeforeGradients(mlir::ArrayRef<RowInput> inputs) const;
  mlir::AffineMap toMap(mlir::ArrayRef<mlir::AffineExpr> places) const;
  mlir::AffineMap toStatisticMap(mlir::ArrayRef<mlir::AffineExpr> places) const;
  mlir::Attribute describe(MatmulOp matmul, bool isSwapped) const;
  mlir::ArrayAttr describeForward() const;
  mlir::ArrayAttr describeBackward() const;
  /// `visible_keys` of an operation, null if each row may see all keys, and its condition, if it has one.
  struct KeyLimit {
    mlir::AffineMapAttr visible;
    std::optional<Operand> condition;
  };
  /// `matmuls` are nodes that code reads, `outputs` what it computes.
  KeyLimit limitKeys(mlir::ArrayRef<const CodeNode *> matmuls, mlir::ArrayRef<const CodeNode *> outputs);
  bool isKnownHere(mlir::Value tensor) const;
  mlir::Value buildBound(mlir::Value tensor);
  mlir::Value buildTruth(const KeyTruth &truth);
  mlir::Value buildAll(mlir::ArrayRef<mlir::Value> conditions);
  Operand makeRowsContiguous(const RowInput &input);
  Operands gather(mlir::ArrayRef<Operand> operands, mlir::ArrayRef<RowInput> inputs,
                  mlir::ArrayRef<Operand> results);
  template <typename Op>
  void build(mlir::ArrayRef<Operand> operands, RowsPlan &plan, mlir::ArrayRef<Operand> results,
             mlir::ArrayAttr sites);
  mlir::SmallVector<Operand> getForwardResults() const;
  mlir::SmallVector<Operand> getBackwardResults() const;
  void replace(mlir::ArrayRef<Operand> results, mlir::Operation *op);
  void buildForward();
  void buildBackward();
  void buildOnline();
  OnlineAttentionOp buildOnlineForward(mlir::MutableArrayRef<Operand> numbers);
  OnlineAttentionGradOp buildOnlineBackward(mlir::ArrayRef<Operand> numbers);
  mlir::Value buildNumbers(mlir::Location loc, llvm::ArrayRef<unsigned> dims, llvm::ArrayRef<Operand> inputs,
                           mlir::Type type,
                           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Block *)> body);
  llvm::SmallVector<Operand> toOperands(llvm::ArrayRef<RowInput> inputs) const;
  Operand buildSink();
  void buildGradientStatistic(unsigned number, llvm::ArrayRef<Operand> numbers);
  Operand buildRowTensor();
  Operand buildProduct(mlir::Value output);
  mlir::Block *addBlock(mlir::Region &region, bool hasKey, unsigned numFloats, mlir::ValueRange inputs);
  bool isStatistic(mlir::Operation &op) const;
  bool isGradientStatistic(mlir::Operation &op) const;
  bool readsRows(mlir::Operation *op) const;
  void findGone();

  mlir::RewriterBase &rewriter;
  AttentionSite &site;
  AttentionReaders readers;
  std::unique_ptr<AttentionParts> parts;
  std::unique_ptr<RowsPlan> forward, backward;
  bool isOnline;
  std::unique_ptr<OnlinePlan> online;       ///< instead of `forward` and `backward`
  mlir::Operation *firstGradient = nullptr; ///< before it the backward operation is put
  llvm::SetVector<mlir::Operation *> gone;  ///< what the two operations replace, and all that only that reads
  mlir::SmallVector<mlir::Value> statistics; ///< results of the forward operation besides the output
  mlir::SmallVector<const CodeNode *> statisticNodes;
  /// Numbers of rows that depend on the gradients of the probabilities and are needed elsewhere, as the
  /// gradient of a sink.
  mlir::SmallVector<mlir::Value> gradientStatistics;
  mlir::SmallVector<const CodeNode *> gradientStatisticNodes;
  llvm::DenseMap<mlir::Value, mlir::Value> magnitudes; ///< of tensors whose bounds are checked
  std::optional<VisibleKeys> hidden;                   ///< what a mask leaves visible, if there is one
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONFUSION_H
