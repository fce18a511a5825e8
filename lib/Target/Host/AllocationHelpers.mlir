// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocation of memory of dynamic size: results by the caller, temporaries on the heap, in a list
// that belongs to the call. The temporaries that are left in the list are freed at the end of the
// call, also after an error. EntryPointHelpers.h describes each function.

llvm.func @aligned_alloc(i64, i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// Calls the caller's function. For a result without elements, which may be at NULL, it returns the
// address of the frame instead, which nothing reads or writes.
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
    %usable = llvm.select %is_null, %frame, %data : i1, !llvm.ptr
    scf.yield %usable : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  return %memory : !llvm.ptr
}

// A block on the heap: a pointer to the next block, the address of the pointer to this block, and
// from byte 64 on the memory.
func.func private @fp8_abi_allocate(%frame: !llvm.ptr, %bytes: i64) -> !llvm.ptr {
  %null = llvm.mlir.zero : !llvm.ptr
  %header = arith.constant 64 : i64
  %most = arith.constant 0x3FFFFFFFFFFFFFFF : i64
  %round = arith.constant 127 : i64
  %mask = arith.constant -64 : i64
  %possible = arith.cmpi ult, %bytes, %most : i64
  %memory = scf.if %possible -> !llvm.ptr {
    %more = arith.addi %bytes, %round : i64
    %size = arith.andi %more, %mask : i64
    %block = llvm.call @aligned_alloc(%header, %size) : (i64, i64) -> !llvm.ptr
    %given = llvm.icmp "ne" %block, %null : !llvm.ptr
    %inside = scf.if %given -> !llvm.ptr {
      %first_at = llvm.getelementptr %frame[8] : (!llvm.ptr) -> !llvm.ptr, i8
      func.call @fp8_abi_link(%block, %first_at) : (!llvm.ptr, !llvm.ptr) -> ()
      %start = llvm.getelementptr %block[64] : (!llvm.ptr) -> !llvm.ptr, i8
      scf.yield %start : !llvm.ptr
    } else {
      scf.yield %null : !llvm.ptr
    }
    scf.yield %inside : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  return %memory : !llvm.ptr
}

// Inserts a block at the front of the list that starts at `first_at`.
func.func private @fp8_abi_link(%block: !llvm.ptr, %first_at: !llvm.ptr) {
  %null = llvm.mlir.zero : !llvm.ptr
  %next = llvm.load %first_at : !llvm.ptr -> !llvm.ptr
  llvm.store %next, %block : !llvm.ptr, !llvm.ptr
  %link = llvm.getelementptr %block[8] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %first_at, %link : !llvm.ptr, !llvm.ptr
  llvm.store %block, %first_at : !llvm.ptr, !llvm.ptr
  %has_next = llvm.icmp "ne" %next, %null : !llvm.ptr
  scf.if %has_next {
    %next_link = llvm.getelementptr %next[8] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.store %block, %next_link : !llvm.ptr, !llvm.ptr
  }
  return
}

func.func private @fp8_abi_free(%memory: !llvm.ptr) {
  %null = llvm.mlir.zero : !llvm.ptr
  %block = llvm.getelementptr %memory[-64] : (!llvm.ptr) -> !llvm.ptr, i8
  %next = llvm.load %block : !llvm.ptr -> !llvm.ptr
  %link = llvm.getelementptr %block[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %pointer_at = llvm.load %link : !llvm.ptr -> !llvm.ptr
  llvm.store %next, %pointer_at : !llvm.ptr, !llvm.ptr
  %has_next = llvm.icmp "ne" %next, %null : !llvm.ptr
  scf.if %has_next {
    %next_link = llvm.getelementptr %next[8] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.store %pointer_at, %next_link : !llvm.ptr, !llvm.ptr
  }
  llvm.call @free(%block) : (!llvm.ptr) -> ()
  return
}

func.func private @fp8_abi_release(%frame: !llvm.ptr) {
  %null = llvm.mlir.zero : !llvm.ptr
  %first_at = llvm.getelementptr %frame[8] : (!llvm.ptr) -> !llvm.ptr, i8
  scf.while : () -> () {
    %first = llvm.load %first_at : !llvm.ptr -> !llvm.ptr
    %more = llvm.icmp "ne" %first, %null : !llvm.ptr
    scf.condition(%more)
  } do {
    %first = llvm.load %first_at : !llvm.ptr -> !llvm.ptr
    %memory = llvm.getelementptr %first[64] : (!llvm.ptr) -> !llvm.ptr, i8
    func.call @fp8_abi_free(%memory) : (!llvm.ptr) -> ()
    scf.yield
  }
  return
}
