// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of the communicator of a call, in libraries with collectives. EntryPointHelpers.h describes each
// function. The byte offsets are those of fp8rt_communicator and fp8rt_collective (fp8rt/communicator.h,
// version 1) and of fp8rt_call (version 2) on a 64-bit machine.

func.func private @fp8_abi_communicator(%frame: !llvm.ptr) -> !llvm.ptr {
  %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %field = llvm.getelementptr %call[104] : (!llvm.ptr) -> !llvm.ptr, i8
  %communicator = llvm.load %field : !llvm.ptr -> !llvm.ptr
  return %communicator : !llvm.ptr
}

func.func private @fp8_abi_rank(%frame: !llvm.ptr) -> i64 {
  %zero = arith.constant 0 : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %communicator = func.call @fp8_abi_communicator(%frame) : (!llvm.ptr) -> !llvm.ptr
  %is_alone = llvm.icmp "eq" %communicator, %null : !llvm.ptr
  %rank = scf.if %is_alone -> i64 {
    scf.yield %zero : i64
  } else {
    %field = llvm.getelementptr %communicator[4] : (!llvm.ptr) -> !llvm.ptr, i8
    %given = llvm.load %field : !llvm.ptr -> i32
    %wide = arith.extui %given : i32 to i64
    scf.yield %wide : i64
  }
  return %rank : i64
}

func.func private @fp8_abi_rank_count(%frame: !llvm.ptr) -> i64 {
  %one = arith.constant 1 : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %communicator = func.call @fp8_abi_communicator(%frame) : (!llvm.ptr) -> !llvm.ptr
  %is_alone = llvm.icmp "eq" %communicator, %null : !llvm.ptr
  %count = scf.if %is_alone -> i64 {
    scf.yield %one : i64
  } else {
    %field = llvm.getelementptr %communicator[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %given = llvm.load %field : !llvm.ptr -> i32
    %wide = arith.extui %given : i32 to i64
    scf.yield %wide : i64
  }
  return %count : i64
}

// Returns whether `status` is 0; otherwise writes the communicator's reason into the call.
func.func private @fp8_abi_communicated(%frame: !llvm.ptr, %status: i32) -> i1 {
  %zero = arith.constant 0 : i32
  %good = arith.cmpi eq, %status, %zero : i32
  scf.if %good {
  } else {
    %communicator = func.call @fp8_abi_communicator(%frame) : (!llvm.ptr) -> !llvm.ptr
    %context_field = llvm.getelementptr %communicator[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %context = llvm.load %context_field : !llvm.ptr -> !llvm.ptr
    %field = llvm.getelementptr %communicator[40] : (!llvm.ptr) -> !llvm.ptr, i8
    %error = llvm.load %field : !llvm.ptr -> !llvm.ptr
    %line = llvm.call %error(%context) : !llvm.ptr, (!llvm.ptr) -> !llvm.ptr
    %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
    %failed = func.call @fp8_abi_fail(%call, %line) : (!llvm.ptr, !llvm.ptr) -> i32
  }
  return %good : i1
}

// Writes an fp8rt_collective, 56 bytes at `step`, which the communicator copies, and starts it.
func.func private @fp8_abi_start(%frame: !llvm.ptr, %step: !llvm.ptr, %what: !llvm.ptr, %group: !llvm.ptr,
    %send: !llvm.ptr, %receive: !llvm.ptr, %count: i64, %bytes: i64, %name: !llvm.ptr, %ticket: !llvm.ptr)
    -> i1 {
  %null = llvm.mlir.zero : !llvm.ptr
  %communicator = func.call @fp8_abi_communicator(%frame) : (!llvm.ptr) -> !llvm.ptr
  %is_alone = llvm.icmp "eq" %communicator, %null : !llvm.ptr
  %started = scf.if %is_alone -> i1 {
    %copied = func.call @fp8_abi_copy_alone(%frame, %receive, %send, %bytes)
        : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> i1
    scf.yield %copied : i1
  } else {
    // kind, reduction, type and root are constants, 16 bytes.
    %words = llvm.load %what : !llvm.ptr -> i128
    llvm.store %words, %step {alignment = 8 : i64} : i128, !llvm.ptr
    %group_field = llvm.getelementptr %step[16] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.store %group, %group_field : !llvm.ptr, !llvm.ptr
    %send_field = llvm.getelementptr %step[24] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.store %send, %send_field : !llvm.ptr, !llvm.ptr
    %receive_field = llvm.getelementptr %step[32] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.store %receive, %receive_field : !llvm.ptr, !llvm.ptr
    %count_field = llvm.getelementptr %step[40] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.store %count, %count_field : i64, !llvm.ptr
    %name_field = llvm.getelementptr %step[48] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.store %name, %name_field : !llvm.ptr, !llvm.ptr
    %context_field = llvm.getelementptr %communicator[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %context = llvm.load %context_field : !llvm.ptr -> !llvm.ptr
    %start_field = llvm.getelementptr %communicator[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %start = llvm.load %start_field : !llvm.ptr -> !llvm.ptr
    %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
    %stream_field = llvm.getelementptr %call[48] : (!llvm.ptr) -> !llvm.ptr, i8
    %stream = llvm.load %stream_field : !llvm.ptr -> !llvm.ptr
    %status = llvm.call %start(%context, %step, %stream, %ticket)
        : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
    %good = func.call @fp8_abi_communicated(%frame, %status) : (!llvm.ptr, i32) -> i1
    scf.yield %good : i1
  }
  return %started : i1
}

func.func private @fp8_abi_wait(%frame: !llvm.ptr, %ticket: i64) -> i1 {
  %true = arith.constant true
  %null = llvm.mlir.zero : !llvm.ptr
  %communicator = func.call @fp8_abi_communicator(%frame) : (!llvm.ptr) -> !llvm.ptr
  %is_alone = llvm.icmp "eq" %communicator, %null : !llvm.ptr
  %done = scf.if %is_alone -> i1 {
    scf.yield %true : i1
  } else {
    %context_field = llvm.getelementptr %communicator[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %context = llvm.load %context_field : !llvm.ptr -> !llvm.ptr
    %wait_field = llvm.getelementptr %communicator[32] : (!llvm.ptr) -> !llvm.ptr, i8
    %wait = llvm.load %wait_field : !llvm.ptr -> !llvm.ptr
    %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
    %stream_field = llvm.getelementptr %call[48] : (!llvm.ptr) -> !llvm.ptr, i8
    %stream = llvm.load %stream_field : !llvm.ptr -> !llvm.ptr
    %status = llvm.call %wait(%context, %ticket, %stream) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> i32
    %good = func.call @fp8_abi_communicated(%frame, %status) : (!llvm.ptr, i32) -> i1
    scf.yield %good : i1
  }
  return %done : i1
}
