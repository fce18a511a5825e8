// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shorthand for the scalar f32 arithmetic and loops that scales are computed with, and the
// rules that lowerings share. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_SCALARBUILDER_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_SCALARBUILDER_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cfloat>
#include <cmath>

namespace fp8 {

/// Shorthand for scalar f32 arithmetic.
class ScalarBuilder {
public:
  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location loc) : b(builder), loc(loc) {}

  mlir::Value real(float value) { return mlir::arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }
  mlir::Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, loc, value); }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  }
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no) {
    return mlir::arith::SelectOp::create(b, loc, condition, yes, no);
  }
  mlir::Value load(mlir::Value memref, mlir::ValueRange indices) {
    return mlir::memref::LoadOp::create(b, loc, memref, indices);
  }
  void store(mlir::Value value, mlir::Value memref, mlir::ValueRange indices) {
    mlir::memref::StoreOp::create(b, loc, value, memref, indices);
  }
  void loop(mlir::Value from, mlir::Value to, llvm::function_ref<void(ScalarBuilder &, mlir::Value)> body) {
    mlir::scf::ForOp::create(b, loc, from, to, index(1), mlir::ValueRange(),
                             [&](mlir::OpBuilder &inner, mlir::Location, mlir::Value i, mlir::ValueRange) {
                               ScalarBuilder nested(inner, loc);
                               body(nested, i);
                               mlir::scf::YieldOp::create(inner, loc);
                             });
  }

  void ifThen(mlir::Value condition, llvm::function_ref<void(ScalarBuilder &)> body) {
    mlir::scf::IfOp::create(b, loc, condition, [&](mlir::OpBuilder &inner, mlir::Location) {
      ScalarBuilder nested(inner, loc);
      body(nested);
      mlir::scf::YieldOp::create(inner, loc);
    });
  }

  /// 0 < amax < Inf: neither 0, Inf nor NaN.
  mlir::Value isUsable(mlir::Value amax) {
    mlir::Value positive = compare(mlir::arith::CmpFPredicate::OGT, amax, real(0.0f));
    mlir::Value finite = compare(mlir::arith::CmpFPredicate::OLT, amax, real(INFINITY));
    return mlir::arith::AndIOp::create(b, loc, positive, finite);
  }
  /// The value, `otherwise` in the place of Inf and NaN.
  mlir::Value finiteOr(mlir::Value value, float otherwise) {
    mlir::Value finite = compare(mlir::arith::CmpFPredicate::OLT, value, real(INFINITY));
    return select(finite, value, real(otherwise));
  }
  /// numerator / amax; the largest f32 where that overflows.
  mlir::Value saturatingQuotient(mlir::Value numerator, mlir::Value amax) {
    mlir::Value quotient = mlir::arith::DivFOp::create(b, loc, numerator, amax);
    mlir::Value overflows = compare(mlir::arith::CmpFPredicate::OEQ, quotient, real(INFINITY));
    return select(overflows, real(FLT_MAX), quotient);
  }
  /// A normal value floored to a power of two: its mantissa cleared.
  mlir::Value floorToPowerOf2(mlir::Value value) {
    mlir::Value bits = mlir::arith::BitcastOp::create(b, loc, b.getI32Type(), value);
    mlir::Value mask = mlir::arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0x7F800000));
    return mlir::arith::BitcastOp::create(b, loc, b.getF32Type(),
                                          mlir::arith::AndIOp::create(b, loc, bits, mask).getResult());
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
};

/// The recipe whose rules hold where no function replaces them.
RecipeAttrInterface getBaseRecipe(RecipeAttrInterface recipe);

/// What an amax divides to give the scale: the largest value of the format, less the margin.
float getScaleNumerator(RecipeAttrInterface recipe, mlir::FloatType format);

/// The scale that follows from `amax`, after `old`.
mlir::Value computeScale(ScalarBuilder &s, mlir::Operation *user, RecipeAttrInterface recipe,
                         mlir::Value numerator, mlir::Value amax, mlir::Value old);

/// The result of a function of the module, whose body is copied to where `s` builds.
mlir::Value inlineFunction(ScalarBuilder &s, mlir::Operation *user, mlir::FlatSymbolRefAttr name,
                           mlir::ValueRange arguments);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_SCALARBUILDER_H
