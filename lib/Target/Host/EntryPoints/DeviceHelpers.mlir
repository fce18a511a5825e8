// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of the device of a call, and its memory of dynamic size: the counterpart of AllocationHelpers.mlir
// in libraries whose kernels run on a device. EntryPointHelpers.h describes each function. The byte offsets
// are those of fp8rt_device (fp8rt/device.h, version 2) and of fp8rt_call (version 2) on a 64-bit machine.

llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

func.func private @fp8_abi_device(%call: !llvm.ptr) -> !llvm.ptr {
  %field = llvm.getelementptr %call[96] : (!llvm.ptr) -> !llvm.ptr, i8
  %device = llvm.load %field : !llvm.ptr -> !llvm.ptr
  return %device : !llvm.ptr
}

func.func private @fp8_abi_device_context(%device: !llvm.ptr) -> !llvm.ptr {
  %field = llvm.getelementptr %device[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %context = llvm.load %field : !llvm.ptr -> !llvm.ptr
  return %context : !llvm.ptr
}

// Returns whether `status` is 0; otherwise writes the device's reason into the call.
func.func private @fp8_abi_device_succeeded(%call: !llvm.ptr, %status: i32) -> i1 {
  %zero = arith.constant 0 : i32
  %good = arith.cmpi eq, %status, %zero : i32
  scf.if %good {
  } else {
    %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
    %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
    %field = llvm.getelementptr %device[80] : (!llvm.ptr) -> !llvm.ptr, i8
    %error = llvm.load %field : !llvm.ptr -> !llvm.ptr
    %line = llvm.call %error(%context) : !llvm.ptr, (!llvm.ptr) -> !llvm.ptr
    %failed = func.call @fp8_abi_fail(%call, %line) : (!llvm.ptr, !llvm.ptr) -> i32
  }
  return %good : i1
}

func.func private @fp8_abi_launch(%frame: !llvm.ptr, %kernel: i32, %line: i32, %x: i64, %y: i64, %z: i64,
    %parameters: !llvm.ptr) -> i1 {
  %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
  %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
  %field = llvm.getelementptr %device[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %launch = llvm.load %field : !llvm.ptr -> !llvm.ptr
  %status = llvm.call %launch(%context, %kernel, %line, %x, %y, %z, %parameters)
      : !llvm.ptr, (!llvm.ptr, i32, i32, i64, i64, i64, !llvm.ptr) -> i32
  %good = func.call @fp8_abi_device_succeeded(%call, %status) : (!llvm.ptr, i32) -> i1
  return %good : i1
}

func.func private @fp8_abi_read(%frame: !llvm.ptr, %host: !llvm.ptr, %source: !llvm.ptr, %bytes: i64) -> i1 {
  %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
  %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
  %field = llvm.getelementptr %device[40] : (!llvm.ptr) -> !llvm.ptr, i8
  %read = llvm.load %field : !llvm.ptr -> !llvm.ptr
  %status = llvm.call %read(%context, %host, %source, %bytes)
      : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> i32
  %good = func.call @fp8_abi_device_succeeded(%call, %status) : (!llvm.ptr, i32) -> i1
  return %good : i1
}

func.func private @fp8_abi_check(%frame: !llvm.ptr, %flag: !llvm.ptr, %message: !llvm.ptr) -> i1 {
  %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
  %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
  %field = llvm.getelementptr %device[88] : (!llvm.ptr) -> !llvm.ptr, i8
  %check = llvm.load %field : !llvm.ptr -> !llvm.ptr
  %status = llvm.call %check(%context, %flag, %message) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  %good = func.call @fp8_abi_device_succeeded(%call, %status) : (!llvm.ptr, i32) -> i1
  return %good : i1
}

func.func private @fp8_abi_symbol(%frame: !llvm.ptr, %symbol: i32) -> !llvm.ptr {
  %one = arith.constant 1 : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %place = llvm.alloca %one x !llvm.ptr : (i64) -> !llvm.ptr
  llvm.store %null, %place : !llvm.ptr, !llvm.ptr
  %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
  %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
  %field = llvm.getelementptr %device[48] : (!llvm.ptr) -> !llvm.ptr, i8
  %find = llvm.load %field : !llvm.ptr -> !llvm.ptr
  %status = llvm.call %find(%context, %symbol, %place) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr) -> i32
  %good = func.call @fp8_abi_device_succeeded(%call, %status) : (!llvm.ptr, i32) -> i1
  %found = llvm.load %place : !llvm.ptr -> !llvm.ptr
  %address = llvm.select %good, %found, %null : i1, !llvm.ptr
  return %address : !llvm.ptr
}

func.func private @fp8_abi_tensor_map(%frame: !llvm.ptr, %map: !llvm.ptr, %type: i32, %rank: i32,
    %base: !llvm.ptr, %sizes: !llvm.ptr, %strides: !llvm.ptr, %box: !llvm.ptr, %swizzle: i32) -> i1 {
  %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
  %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
  %field = llvm.getelementptr %device[72] : (!llvm.ptr) -> !llvm.ptr, i8
  %encode = llvm.load %field : !llvm.ptr -> !llvm.ptr
  %status = llvm.call %encode(%context, %map, %type, %rank, %base, %sizes, %strides, %box, %swizzle)
      : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i32, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i32
  %good = func.call @fp8_abi_device_succeeded(%call, %status) : (!llvm.ptr, i32) -> i1
  return %good : i1
}

// Copies unless the call has failed, both are the same memory, or there is nothing to copy.
func.func private @fp8_abi_copy_on_device(%call: !llvm.ptr, %before: i32, %to: !llvm.ptr, %from: !llvm.ptr,
    %bytes: i64) -> i32 {
  %ok = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %good = arith.cmpi eq, %before, %ok : i32
  %differ = llvm.icmp "ne" %to, %from : !llvm.ptr
  %some = arith.cmpi ne, %bytes, %none : i64
  %both = arith.andi %differ, %some : i1
  %needed = arith.andi %good, %both : i1
  %after = scf.if %needed -> i32 {
    %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
    %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
    %field = llvm.getelementptr %device[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %copy = llvm.load %field : !llvm.ptr -> !llvm.ptr
    %status = llvm.call %copy(%context, %to, %from, %bytes)
        : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> i32
    %copied = func.call @fp8_abi_device_succeeded(%call, %status) : (!llvm.ptr, i32) -> i1
    scf.yield %status : i32
  } else {
    scf.yield %before : i32
  }
  return %after : i32
}

// A temporary has a block of host memory: a pointer to the next block, and the address of the temporary,
// which is that of the block where there are no bytes. NULL from the device leaves NULL here too.
func.func private @fp8_abi_allocate(%frame: !llvm.ptr, %bytes: i64) -> !llvm.ptr {
  %ok = arith.constant 0 : i32
  %size = arith.constant 16 : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %block = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  %given = llvm.icmp "ne" %block, %null : !llvm.ptr
  %result = scf.if %given -> !llvm.ptr {
    %place = llvm.getelementptr %block[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %status = func.call @fp8_abi_allocate_at(%frame, %bytes, %block, %place)
        : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32
    %good = arith.cmpi eq, %status, %ok : i32
    %memory = scf.if %good -> !llvm.ptr {
      %first_at = llvm.getelementptr %frame[8] : (!llvm.ptr) -> !llvm.ptr, i8
      %next = llvm.load %first_at : !llvm.ptr -> !llvm.ptr
      llvm.store %next, %block : !llvm.ptr, !llvm.ptr
      llvm.store %block, %first_at : !llvm.ptr, !llvm.ptr
      %address = llvm.load %place : !llvm.ptr -> !llvm.ptr
      scf.yield %address : !llvm.ptr
    } else {
      llvm.call @free(%block) : (!llvm.ptr) -> ()
      scf.yield %null : !llvm.ptr
    }
    scf.yield %memory : !llvm.ptr
  } else {
    scf.yield %null : !llvm.ptr
  }
  return %result : !llvm.ptr
}

func.func private @fp8_abi_allocate_at(%frame: !llvm.ptr, %bytes: i64, %block: !llvm.ptr, %place: !llvm.ptr)
    -> i32 {
  %ok = arith.constant 0 : i32
  %none = arith.constant 0 : i64
  %empty = arith.cmpi eq, %bytes, %none : i64
  %status = scf.if %empty -> i32 {
    llvm.store %block, %place : !llvm.ptr, !llvm.ptr
    scf.yield %ok : i32
  } else {
    %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
    %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
    %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
    %field = llvm.getelementptr %device[56] : (!llvm.ptr) -> !llvm.ptr, i8
    %allocate = llvm.load %field : !llvm.ptr -> !llvm.ptr
    %given = llvm.call %allocate(%context, %bytes, %place) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> i32
    scf.yield %given : i32
  }
  return %status : i32
}

// Takes the block of `memory` out of the list. A device that cannot free the block reports that at a
// later call.
func.func private @fp8_abi_free(%frame: !llvm.ptr, %memory: !llvm.ptr) {
  %first_at = llvm.getelementptr %frame[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %found_at = scf.while (%at = %first_at) : (!llvm.ptr) -> !llvm.ptr {
    %block = llvm.load %at : !llvm.ptr -> !llvm.ptr
    %place = llvm.getelementptr %block[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %held = llvm.load %place : !llvm.ptr -> !llvm.ptr
    %other = llvm.icmp "ne" %held, %memory : !llvm.ptr
    scf.condition(%other) %at : !llvm.ptr
  } do {
  ^bb0(%at: !llvm.ptr):
    %next = llvm.load %at : !llvm.ptr -> !llvm.ptr
    scf.yield %next : !llvm.ptr
  }
  %block = llvm.load %found_at : !llvm.ptr -> !llvm.ptr
  %next = llvm.load %block : !llvm.ptr -> !llvm.ptr
  llvm.store %next, %found_at : !llvm.ptr, !llvm.ptr
  %has_bytes = llvm.icmp "ne" %block, %memory : !llvm.ptr
  scf.if %has_bytes {
    %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
    %device = func.call @fp8_abi_device(%call) : (!llvm.ptr) -> !llvm.ptr
    %context = func.call @fp8_abi_device_context(%device) : (!llvm.ptr) -> !llvm.ptr
    %field = llvm.getelementptr %device[64] : (!llvm.ptr) -> !llvm.ptr, i8
    %release = llvm.load %field : !llvm.ptr -> !llvm.ptr
    %status = llvm.call %release(%context, %memory) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
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
    %place = llvm.getelementptr %first[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %memory = llvm.load %place : !llvm.ptr -> !llvm.ptr
    func.call @fp8_abi_free(%frame, %memory) : (!llvm.ptr, !llvm.ptr) -> ()
    scf.yield
  }
  return
}

// The collective of one rank: a copy, or nothing where both are the same memory.
func.func private @fp8_abi_copy_alone(%frame: !llvm.ptr, %to: !llvm.ptr, %from: !llvm.ptr, %bytes: i64) -> i1 {
  %ok = arith.constant 0 : i32
  %call = llvm.load %frame : !llvm.ptr -> !llvm.ptr
  %status = func.call @fp8_abi_copy_on_device(%call, %ok, %to, %from, %bytes)
      : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, i64) -> i32
  %good = arith.cmpi eq, %status, %ok : i32
  return %good : i1
}
