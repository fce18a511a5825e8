// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TargetBackendInterface: generates the kernels and the code of a target. Stages 1 to 5 do not
// use it.

#ifndef FP8_TARGET_TARGETBACKEND_H
#define FP8_TARGET_TARGETBACKEND_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Target/Host/HostCode.h"
#include "mlir/Pass/PassManager.h"

#include "fp8/Target/TargetBackend.h.inc"

#endif // FP8_TARGET_TARGETBACKEND_H
