// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties of the tree's types.

#include "Ast.h"

using namespace fp8emu::ptx;

unsigned fp8emu::ptx::byteSize(Type type) {
  switch (type) {
  case Type::Pred:
  case Type::B8:
  case Type::U8:
  case Type::S8:
    return 1;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return 2;
  case Type::B32:
  case Type::U32:
  case Type::S32:
  case Type::F32:
  case Type::F16x2:
  case Type::BF16x2:
  case Type::U16x2:
  case Type::S16x2:
    return 4;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
  case Type::F32x2:
    return 8;
  case Type::B128:
    return 16;
  }
  return 1;
}

const char *fp8emu::ptx::name(Type type) {
  static const char *const kNames[] = {"pred", "b8",  "b16",  "b32",    "b64",   "b128",  "u8",   "u16",
                                       "u32",  "u64", "s8",   "s16",    "s32",   "s64",   "f16",  "f16x2",
                                       "f32",  "f64", "bf16", "bf16x2", "u16x2", "s16x2", "f32x2"};
  return kNames[static_cast<unsigned>(type)];
}

const Function *fp8emu::ptx::find(const Module &module, const std::string &name) {
  const Function *declaration = nullptr;
  for (const Function &function : module.functions)
    if (function.name == name) {
      if (!function.isDeclaration)
        return &function;
      declaration = &function;
    }
  return declaration;
}
