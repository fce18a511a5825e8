// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Access to the parts of a call that CallChecks.mlir has checked: every compiled library contains these functions.
// EntryPointHelpers.h says what each one does.

func.func private @fp8_abi_data(%tensors: !llvm.ptr, %index: i64) -> !llvm.ptr {
  %tensor_at = llvm.getelementptr %tensors[%index] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %tensor = llvm.load %tensor_at : !llvm.ptr -> !llvm.ptr
  %start = llvm.load %tensor : !llvm.ptr -> !llvm.ptr
  %offset_field = llvm.getelementptr %tensor[40] : (!llvm.ptr) -> !llvm.ptr, i8
  %offset = llvm.load %offset_field : !llvm.ptr -> i64
  %data = llvm.getelementptr %start[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  return %data : !llvm.ptr
}

func.func private @fp8_abi_argument(%call: !llvm.ptr, %index: i64) -> !llvm.ptr {
  %field = llvm.getelementptr %call[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %tensors = llvm.load %field : !llvm.ptr -> !llvm.ptr
  %data = func.call @fp8_abi_data(%tensors, %index) : (!llvm.ptr, i64) -> !llvm.ptr
  return %data : !llvm.ptr
}

func.func private @fp8_abi_result(%call: !llvm.ptr, %index: i64) -> !llvm.ptr {
  %field = llvm.getelementptr %call[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %tensors = llvm.load %field : !llvm.ptr -> !llvm.ptr
  %data = func.call @fp8_abi_data(%tensors, %index) : (!llvm.ptr, i64) -> !llvm.ptr
  return %data : !llvm.ptr
}

func.func private @fp8_abi_size(%call: !llvm.ptr, %argument: i64, %dim: i64) -> i64 {
  %field = llvm.getelementptr %call[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %tensors = llvm.load %field : !llvm.ptr -> !llvm.ptr
  %tensor_at = llvm.getelementptr %tensors[%argument] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %tensor = llvm.load %tensor_at : !llvm.ptr -> !llvm.ptr
  %shape_field = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %shape_field : !llvm.ptr -> !llvm.ptr
  %size_at = llvm.getelementptr %shape[%dim] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %size = llvm.load %size_at : !llvm.ptr -> i64
  return %size : i64
}

func.func private @fp8_abi_workspace(%call: !llvm.ptr) -> !llvm.ptr {
  %field = llvm.getelementptr %call[32] : (!llvm.ptr) -> !llvm.ptr, i8
  %workspace = llvm.load %field : !llvm.ptr -> !llvm.ptr
  return %workspace : !llvm.ptr
}

func.func private @fp8_abi_copy(%to: !llvm.ptr, %from: !llvm.ptr, %bytes: i64) {
  %differ = llvm.icmp "ne" %to, %from : !llvm.ptr
  scf.if %differ {
    "llvm.intr.memcpy"(%to, %from, %bytes) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  }
  return
}

// Returns whether one of `rank` sizes is 0.
func.func private @fp8_abi_is_empty(%shape: !llvm.ptr, %rank: i64) -> i1 {
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %elements = scf.for %dim = %none to %rank step %one iter_args(%product = %one) -> i64 : i64 {
    %size_at = llvm.getelementptr %shape[%dim] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %size = llvm.load %size_at : !llvm.ptr -> i64
    %is_none = arith.cmpi eq, %size, %none : i64
    %next = arith.select %is_none, %none, %product : i64
    scf.yield %next : i64
  }
  %is_empty = arith.cmpi eq, %elements, %none : i64
  return %is_empty : i1
}

// Calls the caller's function; NULL if it refuses, or gives no memory. For a result without elements, which may be at
// NULL, it returns the address of the frame instead, which nothing reads or writes.
func.func private @fp8_abi_allocate_result(%frame: !llvm.ptr, %result: i64, %shape: !llvm.ptr, %rank: i64)
    -> !llvm.ptr {
  %ok = arith.constant 0 : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %allocate_field = llvm.getelementptr %call[56] : (!llvm.ptr) -> !llvm.ptr, i8
  %allocate = llvm.load %allocate_field : !llvm.ptr -> !llvm.ptr
  %context_field = llvm.getelementptr %call[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %context = llvm.load %context_field : !llvm.ptr -> !llvm.ptr
  %results_field = llvm.getelementptr %call[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %results = llvm.load %results_field : !llvm.ptr -> !llvm.ptr
  %tensor_at = llvm.getelementptr %results[%result] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %tensor = llvm.load %tensor_at : !llvm.ptr -> !llvm.ptr
  %index = arith.trunci %result : i64 to i32
  %ndim = arith.trunci %rank : i64 to i32
  %status = llvm.call %allocate(%context, %index, %shape, %ndim, %tensor)
      : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i32, !llvm.ptr) -> i32
  %given = arith.cmpi eq, %status, %ok : i32
  %memory = scf.if %given -> !llvm.ptr {
    %data = func.call @fp8_abi_result(%call, %result) : (!llvm.ptr, i64) -> !llvm.ptr
    %is_null = llvm.icmp "eq" %data, %null : !llvm.ptr
    %is_empty = func.call @fp8_abi_is_empty(%shape, %rank) : (!llvm.ptr, i64) -> i1
    %needs_none = arith.andi %is_null, %is_empty : i1
    %usable = llvm.select %needs_none, %frame, %data : i1, !llvm.ptr
    scf.yield %usable : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  return %memory : !llvm.ptr
}

// Returns call->profile, or null unless call->flags says that it is there.
func.func private @fp8_abi_profile(%call: !llvm.ptr) -> !llvm.ptr {
  %profiled_flag = arith.constant 1 : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %has_profile = func.call @fp8_abi_has_flag(%call, %profiled_flag) : (!llvm.ptr, i32) -> i1
  %profile = scf.if %has_profile -> !llvm.ptr {
    %profile_field = llvm.getelementptr %call[88] : (!llvm.ptr) -> !llvm.ptr, i8
    %given = llvm.load %profile_field : !llvm.ptr -> !llvm.ptr
    scf.yield %given : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  return %profile : !llvm.ptr
}

// profile->record(profile, kernel), unless the profile is null.
func.func private @fp8_abi_record(%profile: !llvm.ptr, %kernel: i32) {
  %null = llvm.mlir.zero : !llvm.ptr
  %is_given = llvm.icmp "ne" %profile, %null : !llvm.ptr
  scf.if %is_given {
    %record = llvm.load %profile : !llvm.ptr -> !llvm.ptr
    llvm.call %record(%profile, %kernel) : !llvm.ptr, (!llvm.ptr, i32) -> ()
  }
  return
}
