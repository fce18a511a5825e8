// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers fp8.compute_scale to a kernel with a thread per amax, which runs the formula of the recipe.

#include "Kernel/KernelArguments.h"
#include "Lowering.h"
#include "fp8/Analysis/Sites/SiteNames.h"
#include "fp8/Dialect/FP8/IR/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp8;

bool fp8::lowerComputeScale(OpBuilder &builder, ComputeScaleOp op, LoweringContext &context) {
  auto amaxType = cast<MemRefType>(op.getAmax().getType()),
       scaleType = cast<MemRefType>(op.getOuts().getType());
  auto isDense = [](MemRefType type) {
    return type.hasStaticShape() && (type.getRank() == 0 || type.getLayout().isIdentity());
  };
  // A user's functions may be any code, which generic kernels can hold.
  if (!isDense(amaxType) || !isDense(scaleType) || !op.getRecipe().getFunctions().empty())
    return false;
  int64_t count = amaxType.getNumElements();
  Location loc = op.getLoc();
  std::string site = parseNameStack(loc).site;
  KernelArguments arguments(builder, loc);
  unsigned amaxes = arguments.addPointer(op.getAmax()), scales = arguments.addPointer(op.getOuts());
  KernelSpec spec;
  spec.name = "compute_scale_" + site;
  spec.kind = "history";
  spec.arguments = arguments.types;
  spec.threads = count == 1 ? 32 : 256;
  func::FuncOp kernel = context.kernels.build(loc, spec, [&](KernelBuilder &b) {
    Expr i = b.block(0) * spec.threads + b.thread();
    b.when(i < count, [&] {
      ScalarBuilder s(b, loc);
      ScaleInputs inputs{b.load(b.getF32Type(), b.at(b.globalPointer(amaxes), i * 4)).getValue(),
                         s.real(getFP8Max(cast<FloatType>(op.getFormat()))), s.real(1.0f),
                         op.getInputType() ? cast<FloatType>(*op.getInputType()) : FloatType()};
      Value scale = op.getRecipe().buildScale(b, loc, op, inputs);
      b.store(b.expr(scale), b.at(b.globalPointer(scales), i * 4));
    });
  });
  Value blocks = arith::ConstantIndexOp::create(builder, loc, llvm::divideCeil(count, spec.threads));
  markLaunch(launchKernel(builder, loc, kernel, blocks, arguments.operands), site);
  return true;
}
