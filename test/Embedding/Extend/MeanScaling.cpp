// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recipe of another project: scale = fp8_max / mean of the amaxes of the last two steps. It
// implements RecipeAttrInterface; fp8-mlir knows no more of it.

#include "Extend.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/ScalarBuilder.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace {

class MeanScalingAttr : public Attribute::AttrBase<MeanScalingAttr, Attribute, AttributeStorage,
                                                   fp8::RecipeAttrInterface::Trait> {
public:
  using Base::Base;
  static constexpr StringLiteral name = "mean.last_two";

  // The quantization: E4M3, one f32 scale per tensor, and a state of two rows, for the current
  // step and for the one before it.
  FloatType getFormat(fp8::TensorKind) const { return Float8E4M3FNType::get(getContext()); }
  SmallVector<int64_t> getBlockShape(fp8::TensorKind, ArrayRef<bool>) const { return {}; }
  FloatType getScaleType() const { return Float32Type::get(getContext()); }
  fp8::Accumulation getAccumulation(fp8::Role) const { return fp8::Accumulation::split; }
  bool isStateful() const { return true; }
  int64_t getHistoryLength() const { return 2; }
  StringRef getRecipeName() const { return "mean"; }

  // The amax: the mean of the previous step's amax and the current one; in the first step the
  // current one alone.
  bool readsHistory() const { return true; }
  Value buildAmaxStart(OpBuilder &builder, Location loc, Value) const {
    return fp8::ScalarBuilder(builder, loc).real(0.0f);
  }
  Value buildAmaxStep(OpBuilder &, Location, Value, Value past) const { return past; }
  Value buildAmaxEnd(OpBuilder &builder, Location loc, Value last, Value current) const {
    fp8::ScalarBuilder s(builder, loc);
    Value sum = arith::AddFOp::create(builder, loc, last, current);
    Value mean = arith::MulFOp::create(builder, loc, sum, s.real(0.5f));
    Value isFirst = s.compare(arith::CmpFPredicate::OEQ, last, s.real(0.0f));
    return s.select(isFirst, current, mean);
  }

  Value buildScale(OpBuilder &builder, Location loc, Operation *, const fp8::ScaleInputs &inputs) const {
    fp8::ScalarBuilder s(builder, loc);
    return s.select(s.isUsable(inputs.amax), s.saturatingQuotient(inputs.fp8Max, inputs.amax), inputs.old);
  }
};

class MeanDialect : public Dialect {
public:
  explicit MeanDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<MeanDialect>()) {
    context->loadDialect<fp8::FP8Dialect>();
    addAttributes<MeanScalingAttr>();
  }
  static StringRef getDialectNamespace() { return "mean"; }

  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    if (failed(parser.parseKeyword("last_two")))
      return {};
    return MeanScalingAttr::get(getContext());
  }
  void printAttribute(Attribute, DialectAsmPrinter &printer) const override { printer << "last_two"; }
};

} // namespace

void registerMeanScaling(DialectRegistry &registry) { registry.insert<MeanDialect>(); }
