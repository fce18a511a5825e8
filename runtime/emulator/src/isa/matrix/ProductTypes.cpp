// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common decoding of instructions that multiply matrices: types, shapes, fragments, the
// tensor core they run on; and the check that a whole warp executes them.

#include "Products.h"

#include "exec/Block.h"
#include "exec/Launch.h"

#include <cstdio>
#include <cstdlib>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

static const Element *findElement(const std::string &name) {
  static const std::pair<const char *, Element> elements[] = {
      {"f16", {Element::Float, &num::F16, 16}},   {"bf16", {Element::Float, &num::BF16, 16}},
      {"tf32", {Element::Float, &num::TF32, 32}}, {"e4m3", {Element::Float, &num::E4M3, 8}},
      {"e5m2", {Element::Float, &num::E5M2, 8}},  {"e3m2", {Element::Float, &num::E3M2, 8}},
      {"e2m3", {Element::Float, &num::E2M3, 8}},  {"e2m1", {Element::Float, &num::E2M1, 8, 2}},
      {"f64", {Element::Double, nullptr, 64}},    {"s8", {Element::Integer, nullptr, 8, 0, true}},
      {"u8", {Element::Integer, nullptr, 8}},     {"s4", {Element::Integer, nullptr, 4, 0, true}},
      {"u4", {Element::Integer, nullptr, 4}},     {"b1", {Element::Bit, nullptr, 1}},
  };
  for (const auto &[known, element] : elements)
    if (name == known)
      return &element;
  return nullptr;
}

Element fp8emu::findElement(const Decoder &decoder, const std::string &name) {
  const Element *element = ::findElement(name);
  if (!element)
    decoder.fail(name.empty() ? "a type is missing" : "." + name + " is not a type of a multiplicand");
  return *element;
}

Accumulator fp8emu::findAccumulator(const Decoder &decoder, const std::string &name) {
  const char *const names[] = {"f16", "f32", "s32", "f64"};
  for (unsigned i = 0; i < 4; ++i)
    if (name == names[i])
      return Accumulator(i);
  decoder.fail(name.empty() ? "a type is missing" : "." + name + " is not a type of an accumulator");
}

void fp8emu::takeAligned(Decoder &decoder) {
  decoder.needOneOf({"sync"});
  decoder.needOneOf({"aligned"});
}

Shape fp8emu::takeShape(Decoder &decoder) {
  for (const std::string &modifier : decoder.instruction().modifiers) {
    Shape shape;
    int end = 0;
    if (sscanf(modifier.c_str(), "m%3un%3uk%3u%n", &shape.m, &shape.n, &shape.k, &end) == 3 &&
        size_t(end) == modifier.size() && decoder.take(modifier.c_str()))
      return shape;
  }
  decoder.fail("a shape is missing");
}

unsigned fp8emu::takeNext(Decoder &decoder, std::initializer_list<const char *> names) {
  for (const std::string &modifier : decoder.instruction().modifiers) {
    unsigned index = 0;
    for (const char *name : names) {
      if (modifier == name && decoder.take(name))
        return index;
      ++index;
    }
  }
  return unsigned(decoder.needOneOf(names));
}

static std::vector<Ref> fragment(Decoder &decoder, const Operand &operand, unsigned count, Type type,
                                 bool isDestination) {
  std::vector<Ref> refs;
  auto add = [&](const Operand &part) {
    refs.push_back(isDestination ? decoder.destination(part, type) : decoder.source(part, type));
  };
  if (operand.kind != Operand::Kind::Vector)
    add(operand);
  for (const Operand &part : operand.parts)
    add(part);
  if (refs.size() != count)
    decoder.fail(operand,
                 std::to_string(count) + " registers are expected, there are " + std::to_string(refs.size()));
  return refs;
}

std::vector<Ref> fp8emu::fragmentSource(Decoder &decoder, const Operand &operand, unsigned count, Type type) {
  return fragment(decoder, operand, count, type, /*isDestination=*/false);
}

std::vector<Ref> fp8emu::fragmentDestination(Decoder &decoder, const Operand &operand, unsigned count,
                                             Type type) {
  return fragment(decoder, operand, count, type, /*isDestination=*/true);
}

num::TensorUnit fp8emu::warpUnit(const Decoder &decoder) {
  unsigned target = 0;
  sscanf(decoder.program().tree->target.c_str(), "sm_%u", &target);
  return target < 89    ? num::TensorUnit::Ampere
         : target < 90  ? num::TensorUnit::Ada
         : target < 120 ? num::TensorUnit::HopperWarp
                        : num::TensorUnit::Blackwell;
}

void fp8emu::setSum(Product &product, num::TensorUnit unit) {
  if (product.a.kind != Element::Float)
    return;
  product.sum.leastExponentA = product.a.format->minExponent();
  product.sum.leastExponentB = product.b.format->minExponent();
  bool halfSum = product.c == Accumulator::F16 && product.d == Accumulator::F16;
  product.sum.truncation = num::truncation(unit, *product.a.format, halfSum);
  if (!product.scales)
    return;
  product.sum.leastExponentScale = product.scaleFormat->minExponent();
  product.sum.truncation = num::scaledTruncation(product.shape.k);
}

bool fp8emu::wholeWarp(Warp &warp, Mask mask) {
  if (Mask missing = ~warp.existing() | warp.exited())
    warp.fault(FaultKind::BarrierDivergence,
               "all 32 lanes of a warp must execute it, " + std::to_string(__builtin_popcount(missing)) +
                   " of them do not exist any more",
               mask);
  return warp.converged(kAllLanes, mask);
}
