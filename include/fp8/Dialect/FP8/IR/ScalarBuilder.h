// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shorthand for building the scalar f32 code of recipes. Public, so that recipes of other
// projects can use it.

#ifndef FP8_DIALECT_FP8_IR_SCALARBUILDER_H
#define FP8_DIALECT_FP8_IR_SCALARBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include <cfloat>
#include <cmath>

namespace fp8 {

/// Builds scalar f32 arithmetic at the insertion point of a builder.
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

  /// 0 < amax < Inf; false for 0, Inf and NaN.
  mlir::Value isUsable(mlir::Value amax) {
    mlir::Value positive = compare(mlir::arith::CmpFPredicate::OGT, amax, real(0.0f));
    mlir::Value finite = compare(mlir::arith::CmpFPredicate::OLT, amax, real(INFINITY));
    return mlir::arith::AndIOp::create(b, loc, positive, finite);
  }
  /// `value`, or `otherwise` if it is Inf or NaN.
  mlir::Value finiteOr(mlir::Value value, float otherwise) {
    mlir::Value finite = compare(mlir::arith::CmpFPredicate::OLT, value, real(INFINITY));
    return select(finite, value, real(otherwise));
  }
  /// numerator / amax, or `largest` if the quotient overflows f32.
  mlir::Value saturatingQuotient(mlir::Value numerator, mlir::Value amax, float largest = FLT_MAX) {
    mlir::Value quotient = mlir::arith::DivFOp::create(b, loc, numerator, amax);
    mlir::Value overflows = compare(mlir::arith::CmpFPredicate::OGT, quotient, real(FLT_MAX));
    return select(overflows, real(largest), quotient);
  }
  /// `value`, positive and normal, floored to a power of two by clearing its mantissa.
  mlir::Value floorToPowerOf2(mlir::Value value) {
    mlir::Value bits = mlir::arith::BitcastOp::create(b, loc, b.getI32Type(), value);
    mlir::Value mask = mlir::arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0x7F800000));
    return mlir::arith::BitcastOp::create(b, loc, b.getF32Type(),
                                          mlir::arith::AndIOp::create(b, loc, bits, mask).getResult());
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_SCALARBUILDER_H
