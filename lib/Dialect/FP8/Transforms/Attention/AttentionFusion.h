// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces one place of attention, and its backward pass, by operations. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONFUSION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONFUSION_H

#include "AttentionParts.h"
#include "RowsRegion.h"
#include "fp8/Analysis/Attention/VisibleKeys.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

namespace fp8::detail {

/// Fuses one place.
class AttentionFusion {
public:
  AttentionFusion(mlir::RewriterBase &rewriter, AttentionSite &site)
      : rewriter(rewriter), site(site), readers(site) {}

  /// Returns why the place stays as it is; nothing if `build` may fuse it.
  std::string plan();
  void build();
  /// Returns the bytes of scores, probabilities and their gradients, each once; nothing if a size is dynamic.
  std::optional<int64_t> countScoreBytes() const;
  /// Returns the share of scores that are known to be hidden by a mask; nothing if a size is dynamic. After
  /// `build`.
  std::optional<double> getHiddenShare() const;
  bool hasMask() const { return hidden.has_value(); }

private:
  std::string planForward();
  std::string planBackward();
  mlir::AffineMap toMap(mlir::ArrayRef<mlir::AffineExpr> places) const;
  mlir::AffineMap toStatisticMap(mlir::ArrayRef<mlir::AffineExpr> places) const;
  mlir::Attribute describe(MatmulOp matmul, bool isSwapped) const;
  mlir::AffineMapAttr limitKeys(const RowsPlan &plan);
  template <typename Op>
  Op build(mlir::Operation *before, mlir::ArrayRef<Operand> operands, RowsPlan &plan,
           mlir::ArrayRef<mlir::Value> results, mlir::ArrayRef<mlir::AffineMap> resultMaps,
           mlir::ArrayRef<mlir::Attribute> sites);
  void buildForward();
  void buildBackward();
  void findGone();

  mlir::RewriterBase &rewriter;
  AttentionSite &site;
  AttentionReaders readers;
  std::unique_ptr<AttentionParts> parts;
  std::unique_ptr<RowsPlan> forward, backward;
  mlir::Operation *firstGradient = nullptr; ///< before it the backward operation is put
  llvm::SetVector<mlir::Operation *> gone;  ///< what the two operations replace, and all that only that reads
  mlir::SmallVector<mlir::Value> statistics; ///< results of the forward operation besides the output
  std::optional<VisibleKeys> hidden;         ///< what a mask leaves visible, if there is one
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONFUSION_H
