// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The public headers are C, and the layout that compiled code relies on does not change within a version:
// compiling this file is the test.

#include "fp8rt/call.h"
#include "fp8rt/gpu.h"
#include "fp8rt/library.h"
#include "fp8rt/prepared.h"
#include "fp8rt/ranks.h"
#include "fp8rt/session.h"
#include "fp8rt/state.h"
#include "fp8rt/status.h"
#include "fp8rt/tensors.h"

#include <stddef.h>

#define EXPECT_OFFSET(type, field, bytes) _Static_assert(offsetof(type, field) == (bytes), #field)

EXPECT_OFFSET(fp8rt_call, version, 0);
EXPECT_OFFSET(fp8rt_call, num_arguments, 4);
EXPECT_OFFSET(fp8rt_call, num_results, 8);
EXPECT_OFFSET(fp8rt_call, flags, 12);
EXPECT_OFFSET(fp8rt_call, arguments, 16);
EXPECT_OFFSET(fp8rt_call, results, 24);
EXPECT_OFFSET(fp8rt_call, workspace, 32);
EXPECT_OFFSET(fp8rt_call, workspace_bytes, 40);
EXPECT_OFFSET(fp8rt_call, stream, 48);
EXPECT_OFFSET(fp8rt_call, allocate, 56);
EXPECT_OFFSET(fp8rt_call, allocate_context, 64);
EXPECT_OFFSET(fp8rt_call, error, 72);
EXPECT_OFFSET(fp8rt_call, error_capacity, 80);
EXPECT_OFFSET(fp8rt_call, profile, 88);
EXPECT_OFFSET(fp8rt_call, device, 96);
EXPECT_OFFSET(fp8rt_call, communicator, 104);
EXPECT_OFFSET(fp8rt_profile, record, 0);
_Static_assert(sizeof(fp8rt_call) == 112, "fp8rt_call");

EXPECT_OFFSET(DLTensor, data, 0);
EXPECT_OFFSET(DLTensor, device, 8);
EXPECT_OFFSET(DLTensor, ndim, 16);
EXPECT_OFFSET(DLTensor, dtype, 20);
EXPECT_OFFSET(DLTensor, shape, 24);
EXPECT_OFFSET(DLTensor, strides, 32);
EXPECT_OFFSET(DLTensor, byte_offset, 40);
_Static_assert(sizeof(DLTensor) == 48, "DLTensor");

EXPECT_OFFSET(fp8rt_device, context, 8);
EXPECT_OFFSET(fp8rt_device, launch, 16);
EXPECT_OFFSET(fp8rt_device, copy, 24);
EXPECT_OFFSET(fp8rt_device, fill, 32);
EXPECT_OFFSET(fp8rt_device, read, 40);
EXPECT_OFFSET(fp8rt_device, symbol, 48);
EXPECT_OFFSET(fp8rt_device, allocate, 56);
EXPECT_OFFSET(fp8rt_device, release, 64);
EXPECT_OFFSET(fp8rt_device, tensor_map, 72);
EXPECT_OFFSET(fp8rt_device, error, 80);
EXPECT_OFFSET(fp8rt_device, check, 88);
_Static_assert(sizeof(fp8rt_device) == 96, "fp8rt_device");
_Static_assert(sizeof(fp8rt_device_image) == 48, "fp8rt_device_image");
_Static_assert(sizeof(fp8rt_device_kernel) == 24, "fp8rt_device_kernel");
_Static_assert(sizeof(fp8rt_device_code) == 40, "fp8rt_device_code");

EXPECT_OFFSET(fp8rt_communicator, rank, 4);
EXPECT_OFFSET(fp8rt_communicator, size, 8);
EXPECT_OFFSET(fp8rt_communicator, context, 16);
EXPECT_OFFSET(fp8rt_communicator, start, 24);
EXPECT_OFFSET(fp8rt_communicator, wait, 32);
EXPECT_OFFSET(fp8rt_communicator, error, 40);
_Static_assert(sizeof(fp8rt_communicator) == 48, "fp8rt_communicator");
EXPECT_OFFSET(fp8rt_group, rank, 8);
EXPECT_OFFSET(fp8rt_group, axes, 12);
EXPECT_OFFSET(fp8rt_collective, root, 12);
EXPECT_OFFSET(fp8rt_collective, group, 16);
EXPECT_OFFSET(fp8rt_collective, send, 24);
EXPECT_OFFSET(fp8rt_collective, receive, 32);
EXPECT_OFFSET(fp8rt_collective, count, 40);
EXPECT_OFFSET(fp8rt_collective, name, 48);
_Static_assert(sizeof(fp8rt_collective) == 56, "fp8rt_collective");
