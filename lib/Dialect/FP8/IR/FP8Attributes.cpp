// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the attributes, and properties of FP8 formats. Each recipe has a file of its
// own.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp8;

#include "fp8/Dialect/FP8/IR/FP8AttrInterfaces.cpp.inc"
#include "fp8/Dialect/FP8/IR/FP8Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Attributes.cpp.inc"

void FP8Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/Dialect/FP8/IR/FP8Attributes.cpp.inc"
      >();
}

FailureOr<APFloat> fp8::parseF32(AsmParser &parser) {
  double value;
  if (parser.parseFloat(value))
    return failure();
  return APFloat(static_cast<float>(value));
}

void fp8::printF32(AsmPrinter &printer, const APFloat &value) { printer.printFloat(value); }

float fp8::getFP8Max(FloatType format) {
  return APFloat::getLargest(format.getFloatSemantics()).convertToFloat();
}

std::string fp8::getFormatName(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return "E4M3";
  if (isa<Float8E5M2Type>(type))
    return "E5M2";
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}
