// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocation of temporaries of dynamic size on the heap, in a list that belongs to the call. The temporaries
// that are left in the list are freed at the end of the call, also after an error. EntryPointHelpers.h
// describes each function; DeviceHelpers.mlir has them for memory of a device.

llvm.func @aligned_alloc(i64, i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

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

func.func private @fp8_abi_free(%frame: !llvm.ptr, %memory: !llvm.ptr) {
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
    func.call @fp8_abi_free(%frame, %memory) : (!llvm.ptr, !llvm.ptr) -> ()
    scf.yield
  }
  return
}

// The collective of one rank: a copy, or nothing where both are the same memory.
func.func private @fp8_abi_copy_alone(%frame: !llvm.ptr, %to: !llvm.ptr, %from: !llvm.ptr, %bytes: i64) -> i1 {
  %true = arith.constant true
  func.call @fp8_abi_copy(%to, %from, %bytes) : (!llvm.ptr, !llvm.ptr, i64) -> ()
  return %true : i1
}
