// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generated definitions of TargetBackendInterface.

#include "fp8/Target/TargetBackend.h"

#include "fp8/Target/TargetBackend.cpp.inc"
