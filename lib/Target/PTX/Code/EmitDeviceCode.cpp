// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the device code of a program into its library: constants with the layout of fp8rt/device.h, and the
// function that returns them.

#include "DeviceCode.h"
#include "fp8/Target/Host/HostCode.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_EMITDEVICECODE
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// FP8RT_DEVICE_VERSION.
static constexpr int64_t kDeviceVersion = 2;

namespace {
/// Builds constants of a module, with the bodies of their initializers.
class ConstantBuilder {
public:
  explicit ConstantBuilder(ModuleOp module)
      : builder(OpBuilder::atBlockEnd(module.getBody())), loc(module.getLoc()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  /// Adds a constant that holds `bytes`; a NUL follows.
  LLVM::GlobalOp addText(const Twine &name, StringRef bytes) {
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size() + 1);
    return LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                  name.str(), builder.getStringAttr(bytes.str() + '\0'), /*alignment=*/16);
  }

  /// Adds a constant of type `type` whose value `build` returns.
  LLVM::GlobalOp add(StringRef name, Type type, function_ref<Value()> build) {
    auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                         name, Attribute());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&global.getInitializerRegion());
    Value value = build();
    LLVM::ReturnOp::create(builder, loc, value);
    return global;
  }

  Value addressOf(LLVM::GlobalOp global) {
    return global ? LLVM::AddressOfOp::create(builder, loc, global).getResult()
                  : LLVM::ZeroOp::create(builder, loc, pointer).getResult();
  }
  Value word(int64_t value) { return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), value); }
  Value longWord(int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), value);
  }

  /// Builds a struct or an array of `fields`.
  Value aggregate(Type type, ValueRange fields) {
    Value value = LLVM::PoisonOp::create(builder, loc, type);
    for (auto [index, field] : llvm::enumerate(fields))
      value = LLVM::InsertValueOp::create(builder, loc, value, field, static_cast<int64_t>(index));
    return value;
  }

  Type structOf(StringRef fields); // 'p': pointer, 'w': i32, 'l': i64

  OpBuilder builder;
  Location loc;
  Type pointer;
};
} // namespace

Type ConstantBuilder::structOf(StringRef fields) {
  SmallVector<Type> types;
  for (char field : fields)
    types.push_back(field == 'p' ? pointer : Type(builder.getIntegerType(field == 'w' ? 32 : 64)));
  return LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
}

/// Adds the array of fp8rt_device_kernel.
static LLVM::GlobalOp addKernels(ConstantBuilder &constants, ArrayRef<FunctionOpInterface> kernels) {
  Type type = constants.structOf("pwwww");
  SmallVector<LLVM::GlobalOp> names;
  for (auto [index, kernel] : llvm::enumerate(kernels))
    names.push_back(
        constants.addText("fp8_kernel_name_" + Twine(index), FunctionOpInterface(kernel).getName()));
  auto array = LLVM::LLVMArrayType::get(type, kernels.size());
  return constants.add("fp8_device_kernels", array, [&] {
    SmallVector<Value> values;
    for (auto [name, kernel] : llvm::zip_equal(names, kernels)) {
      auto read = [&, kernel = kernel](StringRef attribute, int64_t otherwise) {
        auto number = kernel->getAttrOfType<IntegerAttr>(attribute);
        return constants.word(number ? number.getInt() : otherwise);
      };
      values.push_back(constants.aggregate(type, {constants.addressOf(name), read(kThreadsAttrName, 1),
                                                  read(kSharedBytesAttrName, 0), read(kClusterAttrName, 1),
                                                  constants.word(0)}));
    }
    return constants.aggregate(array, values);
  });
}

/// Adds the array of the names of symbols.
static LLVM::GlobalOp addSymbols(ConstantBuilder &constants, ArrayAttr symbols) {
  SmallVector<LLVM::GlobalOp> names;
  for (auto [index, name] : llvm::enumerate(symbols.getAsValueRange<StringAttr>()))
    names.push_back(constants.addText("fp8_symbol_name_" + Twine(index), name));
  auto array = LLVM::LLVMArrayType::get(constants.pointer, names.size());
  return constants.add("fp8_device_symbols", array, [&] {
    SmallVector<Value> values;
    for (LLVM::GlobalOp name : names)
      values.push_back(constants.addressOf(name));
    return constants.aggregate(array, values);
  });
}

/// Adds the one fp8rt_device_image: PTX, and machine code if an assembler has made it.
static LLVM::GlobalOp addImage(ConstantBuilder &constants, gpu::GPUModuleOp kernels, const Chip &chip) {
  StringRef text = kernels->getAttrOfType<StringAttr>(kPTXAttrName).getValue();
  auto code = kernels->getAttrOfType<StringAttr>(kCubinAttrName);
  LLVM::GlobalOp name = constants.addText("fp8_device_chip", chip.name);
  LLVM::GlobalOp ptx = constants.addText(kPTXGlobalName, text);
  LLVM::GlobalOp cubin = code ? constants.addText("fp8_device_cubin", code.getValue()) : LLVM::GlobalOp();
  Type type = constants.structOf("pwwplpl");
  return constants.add("fp8_device_image", type, [&] {
    return constants.aggregate(type, {constants.addressOf(name), constants.word(getPTXVersion(kernels, chip)),
                                      constants.word(0), constants.addressOf(ptx),
                                      constants.longWord(text.size() + 1), constants.addressOf(cubin),
                                      constants.longWord(code ? code.size() : 0)});
  });
}

static void addFunction(ConstantBuilder &constants, LLVM::GlobalOp code) {
  OpBuilder &builder = constants.builder;
  auto function = LLVM::LLVMFuncOp::create(builder, constants.loc, kDeviceCodeName,
                                           LLVM::LLVMFunctionType::get(constants.pointer, {}));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  LLVM::ReturnOp::create(builder, constants.loc, constants.addressOf(code));
}

namespace {
struct EmitDeviceCodePass : public fp8::impl::EmitDeviceCodeBase<EmitDeviceCodePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    gpu::GPUModuleOp kernels = getKernelModule(module);
    FailureOr<ChipAttr> chip = getChipOf(module);
    if (failed(chip))
      return signalPassFailure();
    if (!kernels || !kernels->hasAttr(kPTXAttrName)) {
      module.emitError("has no PTX: run fp8-serialize-kernels first");
      return signalPassFailure();
    }
    ConstantBuilder constants(module);
    SmallVector<FunctionOpInterface> list = getKernels(kernels);
    auto symbols = kernels->getAttrOfType<ArrayAttr>(kSymbolsAttrName);
    if (!symbols)
      symbols = ArrayAttr::get(&getContext(), {});
    LLVM::GlobalOp image = addImage(constants, kernels, getChip(*chip));
    LLVM::GlobalOp table = addKernels(constants, list), names = addSymbols(constants, symbols);
    Type type = constants.structOf("wwpwwpp");
    LLVM::GlobalOp code = constants.add("fp8_device_code_value", type, [&] {
      return constants.aggregate(type, {constants.word(kDeviceVersion), constants.word(1),
                                        constants.addressOf(image), constants.word(list.size()),
                                        constants.word(symbols.size()), constants.addressOf(table),
                                        constants.addressOf(names)});
    });
    addFunction(constants, code);
    kernels.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }
};
} // namespace
