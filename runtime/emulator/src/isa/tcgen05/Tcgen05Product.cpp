// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding tcgen05.mma (PTX ISA 9.7.16.10.9).

#include "Tcgen05Product.h"

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

void startProducts(Warp &warp, const Op &op, Mask mask) {
  const auto &code = *static_cast<const TensorProductCode *>(op.payload);
  checkPeer(warp, code.pair, mask);
  forLanes(mask, [&](unsigned lane) {
    warp.block().cluster().operations().start(startTensorProduct(warp, lane, code));
  });
}

/// Scale factors along K (PTX ISA 9.7.16.10.7.1), and that the kind allows them.
unsigned takeScales(Decoder &decoder, ProductKind kind) {
  decoder.needOneOf({"block_scale"});
  int size = decoder.takeOneOf({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block32", "block16"});
  bool is8 = kind == ProductKind::MXF8F6F4;
  if (size < 0 && kind == ProductKind::MXF4NVF4)
    decoder.fail("this kind needs .scale_vec or .block16 or .block32");
  unsigned scales = size < 0 || size == 3 ? (is8 ? 1 : 2) : size == 4 ? 4 : 1U << size;
  bool fits = is8 ? scales == 1 : kind == ProductKind::MXF4 ? scales == 2 : scales >= 2;
  if (!fits)
    decoder.fail("the kind does not allow that size of scale vectors");
  return scales;
}

/// How A or B is kept for reuse changes no value, but shifting A does.
void takeCollector(Decoder &decoder, bool weightStationary) {
  if (decoder.take("ashift"))
    decoder.fail(".ashift is not supported");
  for (const std::string &modifier : decoder.instruction().modifiers) {
    if (modifier.rfind("collector::", 0) != 0)
      continue;
    std::string buffer = modifier.substr(11, modifier.find("::", 11) - 11),
                usage = modifier.substr(11 + buffer.size());
    bool isBuffer = weightStationary
                        ? buffer.size() == 2 && buffer[0] == 'b' && buffer[1] >= '0' && buffer[1] <= '3'
                        : buffer == "a";
    if (isBuffer && (usage == "::fill" || usage == "::use" || usage == "::lastuse" || usage == "::discard"))
      decoder.take(modifier.c_str());
  }
}

class ProductDecoder {
public:
  explicit ProductDecoder(Decoder &decoder) : decoder(decoder) {}

  void decode() {
    takeModifiers();
    code->d = tensorOperand(decoder, next());
    const Operand &a = next();
    code->aInTensorMemory = a.kind == Operand::Kind::Address;
    if (code->aInTensorMemory)
      code->a = tensorOperand(decoder, a);
    else
      code->descriptorA = decoder.source(a, Type::U64);
    code->descriptorB = decoder.source(next(), Type::U64);
    code->instruction = decoder.source(next(), Type::U32);
    isScaled(code->kind) ? takeScaleFactors() : takeDisabledLanes();
    code->enableD = decoder.predicate(next(), &code->enableDNegated);
    takeLast();
    decoder.expectOperands(position);
    decoder.keep<TensorProductCode>(code);
    decoder.op().handler = &startProducts;
  }

private:
  const Operand &next() { return decoder.operand(position++); }

  void takeModifiers() {
    if (decoder.take("sp"))
      decoder.fail("products of sparse matrices are not supported");
    code->weightStationary = decoder.take("ws");
    code->pair = takePair(decoder);
    code->kind = ProductKind(decoder.needOneOf({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
                                                "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"}));
    if (isScaled(code->kind))
      code->scales = takeScales(decoder, code->kind);
    if (code->weightStationary && (code->pair || code->scales))
      decoder.fail(".ws is for one block, without scales");
    takeCollector(decoder, code->weightStationary);
  }

  void takeScaleFactors() {
    code->scaleA = tensorOperand(decoder, next());
    code->scaleB = tensorOperand(decoder, next());
  }

  void takeDisabledLanes() {
    if (code->weightStationary || decoder.operand(position).kind != Operand::Kind::Vector)
      return;
    const Operand &lanes = next();
    for (const Operand &part : lanes.parts)
      code->disabled.push_back(decoder.source(part, Type::U32));
    if (code->disabled.size() != (code->pair ? 8 : 4))
      decoder.fail(lanes, "the lanes that are not written are 4 registers, 8 with .cta_group::2");
  }

  /// Of D, or which columns of B are zero.
  void takeLast() {
    if (position >= decoder.operands())
      return;
    const Operand &last = next();
    if (code->weightStationary) {
      code->zeroColumns = decoder.source(last, Type::U64);
      return;
    }
    if (code->kind != ProductKind::F16 && code->kind != ProductKind::TF32)
      decoder.fail(last, "D is scaled in .kind::f16 and .kind::tf32 alone");
    int64_t scale = decoder.integer(last);
    if (scale < 0 || scale > 15)
      decoder.fail(last, "the scale of D is 0 to 15");
    code->scaleD = unsigned(scale);
  }

  Decoder &decoder;
  std::shared_ptr<TensorProductCode> code = std::make_shared<TensorProductCode>();
  unsigned position = 0;
};

} // namespace

void fp8emu::decodeTensorProduct(Decoder &decoder) { ProductDecoder(decoder).decode(); }
