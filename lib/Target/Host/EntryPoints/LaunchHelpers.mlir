// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of kernels that an entry point describes by data: a record of 64-bit words for each launch
// (lib/Target/PTX/Code/LaunchRecords.h). The byte offsets are those of the fields of a record.

// Writes the parameter that the words at `parameter` describe to `place`; false if the device cannot.
func.func private @fp8_abi_set_parameter(%frame: !llvm.ptr, %parameter: !llvm.ptr, %buffers: !llvm.ptr,
    %place: !llvm.ptr) -> i1 {
  %true = arith.constant true
  %address = arith.constant 1 : i64
  %map = arith.constant 2 : i64
  %stored = arith.constant 3 : i64
  %kind = llvm.load %parameter : !llvm.ptr -> i64
  %first_at = llvm.getelementptr %parameter[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %first = llvm.load %first_at : !llvm.ptr -> i64
  %is_stored = arith.cmpi eq, %kind, %stored : i64
  %good = scf.if %is_stored -> i1 {
    scf.yield %true : i1
  } else {
    %is_address = arith.cmpi eq, %kind, %address : i64
    %is_map = arith.cmpi eq, %kind, %map : i64
    %in_buffer = arith.ori %is_address, %is_map : i1
    %value = scf.if %in_buffer -> i64 {
      %start_at = llvm.getelementptr %buffers[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i64
      %start = llvm.load %start_at : !llvm.ptr -> i64
      %offset_at = llvm.getelementptr %parameter[16] : (!llvm.ptr) -> !llvm.ptr, i8
      %offset = llvm.load %offset_at : !llvm.ptr -> i64
      %sum = arith.addi %start, %offset : i64
      scf.yield %sum : i64
    } else {
      scf.yield %first : i64
    }
    %made = scf.if %is_map -> i1 {
      %base = llvm.inttoptr %value : i64 to !llvm.ptr
      %type_at = llvm.getelementptr %parameter[24] : (!llvm.ptr) -> !llvm.ptr, i8
      %type = llvm.load %type_at : !llvm.ptr -> i32
      %rank_at = llvm.getelementptr %parameter[32] : (!llvm.ptr) -> !llvm.ptr, i8
      %rank = llvm.load %rank_at : !llvm.ptr -> i32
      %swizzle_at = llvm.getelementptr %parameter[40] : (!llvm.ptr) -> !llvm.ptr, i8
      %swizzle = llvm.load %swizzle_at : !llvm.ptr -> i32
      %sizes = llvm.getelementptr %parameter[48] : (!llvm.ptr) -> !llvm.ptr, i8
      %strides = llvm.getelementptr %parameter[88] : (!llvm.ptr) -> !llvm.ptr, i8
      %box = llvm.getelementptr %parameter[128] : (!llvm.ptr) -> !llvm.ptr, i8
      %encoded = func.call @fp8_abi_tensor_map(%frame, %place, %type, %rank, %base, %sizes, %strides, %box, %swizzle)
          : (!llvm.ptr, !llvm.ptr, i32, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i1
      scf.yield %encoded : i1
    } else {
      llvm.store %value, %place : i64, !llvm.ptr
      scf.yield %true : i1
    }
    scf.yield %made : i1
  }
  return %good : i1
}

// Writes the parameters of the launch that `record` describes, and their addresses.
func.func private @fp8_abi_set_parameters(%frame: !llvm.ptr, %record: !llvm.ptr, %buffers: !llvm.ptr,
    %slots: !llvm.ptr, %pointers: !llvm.ptr) -> i1 {
  %true = arith.constant true
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %map = arith.constant 2 : i64
  %words_of_map = arith.constant 19 : i64
  %words_of_others = arith.constant 3 : i64
  %stride_at = llvm.getelementptr %record[48] : (!llvm.ptr) -> !llvm.ptr, i8
  %stride = llvm.load %stride_at : !llvm.ptr -> i64
  %count_at = llvm.getelementptr %record[56] : (!llvm.ptr) -> !llvm.ptr, i8
  %count = llvm.load %count_at : !llvm.ptr -> i64
  %first = llvm.getelementptr %record[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %all:4 = scf.while (%i = %zero, %parameter = %first, %place = %slots, %good = %true)
      : (i64, !llvm.ptr, !llvm.ptr, i1) -> (i64, !llvm.ptr, !llvm.ptr, i1) {
    %inside = arith.cmpi ne, %i, %count : i64
    %more = arith.andi %inside, %good : i1
    scf.condition(%more) %i, %parameter, %place, %good : i64, !llvm.ptr, !llvm.ptr, i1
  } do {
  ^bb0(%i: i64, %parameter: !llvm.ptr, %place: !llvm.ptr, %good: i1):
    %pointer = llvm.getelementptr %pointers[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
    llvm.store %place, %pointer : !llvm.ptr, !llvm.ptr
    %set = func.call @fp8_abi_set_parameter(%frame, %parameter, %buffers, %place)
        : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i1
    %kind = llvm.load %parameter : !llvm.ptr -> i64
    %is_map = arith.cmpi eq, %kind, %map : i64
    %words = arith.select %is_map, %words_of_map, %words_of_others : i64
    %next_parameter = llvm.getelementptr %parameter[%words] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %next_place = llvm.getelementptr %place[%stride] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %next = arith.addi %i, %one : i64
    scf.yield %next, %next_parameter, %next_place, %set : i64, !llvm.ptr, !llvm.ptr, i1
  }
  return %all#3 : i1
}

// Launches one kernel.
func.func private @fp8_abi_launch_record(%frame: !llvm.ptr, %record: !llvm.ptr, %buffers: !llvm.ptr,
    %slots: !llvm.ptr, %pointers: !llvm.ptr, %grid: !llvm.ptr) -> i1 {
  %none = arith.constant 0 : i64
  %set = func.call @fp8_abi_set_parameters(%frame, %record, %buffers, %slots, %pointers)
      : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i1
  %good = scf.if %set -> i1 {
    %kernel_at = llvm.getelementptr %record[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %kernel = llvm.load %kernel_at : !llvm.ptr -> i32
    %line_at = llvm.getelementptr %record[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %line = llvm.load %line_at : !llvm.ptr -> i32
    %known_grid = llvm.getelementptr %record[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %known_x = llvm.load %known_grid : !llvm.ptr -> i64
    %is_stored = arith.cmpi slt, %known_x, %none : i64
    %x_at = llvm.select %is_stored, %grid, %known_grid : i1, !llvm.ptr
    %x = llvm.load %x_at : !llvm.ptr -> i64
    %y_at = llvm.getelementptr %x_at[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %y = llvm.load %y_at : !llvm.ptr -> i64
    %z_at = llvm.getelementptr %x_at[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %z = llvm.load %z_at : !llvm.ptr -> i64
    %launched = func.call @fp8_abi_launch(%frame, %kernel, %line, %x, %y, %z, %pointers)
        : (!llvm.ptr, i32, i32, i64, i64, i64, !llvm.ptr) -> i1
    scf.yield %launched : i1
  } else {
    scf.yield %set : i1
  }
  return %good : i1
}

// Launches kernels one after the other, until one fails.
func.func private @fp8_abi_launch_all(%frame: !llvm.ptr, %records: !llvm.ptr, %count: i64, %buffers: !llvm.ptr,
    %slots: !llvm.ptr, %pointers: !llvm.ptr, %grid: !llvm.ptr) -> i1 {
  %true = arith.constant true
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %all:3 = scf.while (%record = %records, %left = %count, %good = %true)
      : (!llvm.ptr, i64, i1) -> (!llvm.ptr, i64, i1) {
    %some = arith.cmpi ne, %left, %none : i64
    %more = arith.andi %some, %good : i1
    scf.condition(%more) %record, %left, %good : !llvm.ptr, i64, i1
  } do {
  ^bb0(%record: !llvm.ptr, %left: i64, %good: i1):
    %launched = func.call @fp8_abi_launch_record(%frame, %record, %buffers, %slots, %pointers, %grid)
        : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i1
    %words = llvm.load %record : !llvm.ptr -> i64
    %next = llvm.getelementptr %record[%words] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %less = arith.subi %left, %one : i64
    scf.yield %next, %less, %launched : !llvm.ptr, i64, i1
  }
  return %all#2 : i1
}
