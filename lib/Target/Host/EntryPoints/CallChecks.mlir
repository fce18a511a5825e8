// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checks of the C ABI: every compiled library contains these functions. EntryPointHelpers.h says what
// @fp8_abi_check_call and @fp8_abi_fail do. The byte offsets are those of fp8rt_call (fp8rt/call.h, version 2)
// and of DLTensor on a 64-bit machine.

llvm.func @strlen(!llvm.ptr) -> i64

// call->error = line, cut to call->error_capacity; NULL where the reason is written already. Returns 1, the
// status of the call.
func.func private @fp8_abi_fail(%call: !llvm.ptr, %line: !llvm.ptr) -> i32 {
  %failed = arith.constant 1 : i32
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %end = arith.constant 0 : i8
  %null = llvm.mlir.zero : !llvm.ptr
  %error_field = llvm.getelementptr %call[72] : (!llvm.ptr) -> !llvm.ptr, i8
  %error = llvm.load %error_field : !llvm.ptr -> !llvm.ptr
  %capacity_field = llvm.getelementptr %call[80] : (!llvm.ptr) -> !llvm.ptr, i8
  %capacity = llvm.load %capacity_field : !llvm.ptr -> i64
  %is_given = llvm.icmp "ne" %error, %null : !llvm.ptr
  %has_room = arith.cmpi ugt, %capacity, %zero : i64
  %can_write = arith.andi %is_given, %has_room : i1
  %has_line = llvm.icmp "ne" %line, %null : !llvm.ptr
  %usable = arith.andi %can_write, %has_line : i1
  scf.if %usable {
    %length = llvm.call @strlen(%line) : (!llvm.ptr) -> i64
    %room = arith.subi %capacity, %one : i64
    %count = arith.minui %length, %room : i64
    "llvm.intr.memcpy"(%error, %line, %count) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    %last = llvm.getelementptr %error[%count] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    llvm.store %end, %last : i8, !llvm.ptr
  }
  return %failed : i32
}

// Returns the size that a spec other than a size requires: `size` where any size fits (0 for a negative one), or
// the size of the same dimension of an argument.
func.func private @fp8_abi_wanted_size(%call: !llvm.ptr, %spec: i64, %dim: i64, %size: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %any = arith.constant -1 : i64
  %first = arith.constant -2 : i64
  %is_any = arith.cmpi eq, %spec, %any : i64
  %wanted = scf.if %is_any -> i64 {
    %given = arith.maxsi %size, %zero : i64
    scf.yield %given : i64
  } else {
    %argument = arith.subi %first, %spec : i64
    %same = func.call @fp8_abi_size(%call, %argument, %dim) : (!llvm.ptr, i64, i64) -> i64
    scf.yield %same : i64
  }
  return %wanted : i64
}

// Checks that the sizes are those of the spec, that the strides are absent or those of row-major data
// without gaps, and that there is memory unless there are no elements. Strides of dimensions of size 1
// mean nothing.
func.func private @fp8_abi_check_shape(%call: !llvm.ptr, %tensor: !llvm.ptr, %spec: !llvm.ptr) -> i1 {
  %true = arith.constant true
  %null = llvm.mlir.zero : !llvm.ptr
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %data = llvm.load %tensor : !llvm.ptr -> !llvm.ptr
  %shape_field = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %shape_field : !llvm.ptr -> !llvm.ptr
  %strides_field = llvm.getelementptr %tensor[32] : (!llvm.ptr) -> !llvm.ptr, i8
  %strides = llvm.load %strides_field : !llvm.ptr -> !llvm.ptr
  %is_compact = llvm.icmp "eq" %strides, %null : !llvm.ptr
  %readable = arith.select %is_compact, %shape, %strides : !llvm.ptr
  %rank_field = llvm.getelementptr %spec[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %rank = llvm.load %rank_field : !llvm.ptr -> i64
  %sizes = llvm.getelementptr %spec[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %last = arith.subi %rank, %one : i64
  %fits, %fits_strides, %elements = scf.for %i = %zero to %rank step %one
      iter_args(%size_ok = %true, %stride_ok = %true, %compact = %one) -> (i1, i1, i64) : i64 {
    %dim = arith.subi %last, %i : i64
    %want_at = llvm.getelementptr %sizes[%dim] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %want_spec = llvm.load %want_at : !llvm.ptr -> i64
    %size_at = llvm.getelementptr %shape[%dim] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %size = llvm.load %size_at : !llvm.ptr -> i64
    %is_static = arith.cmpi sge, %want_spec, %zero : i64
    %want = scf.if %is_static -> i64 {
      scf.yield %want_spec : i64
    } else {
      %dynamic = func.call @fp8_abi_wanted_size(%call, %want_spec, %dim, %size) : (!llvm.ptr, i64, i64, i64) -> i64
      scf.yield %dynamic : i64
    }
    %stride_at = llvm.getelementptr %readable[%dim] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %stride = llvm.load %stride_at : !llvm.ptr -> i64
    %same_size = arith.cmpi eq, %size, %want : i64
    %same_stride = arith.cmpi eq, %stride, %compact : i64
    %is_one = arith.cmpi eq, %size, %one : i64
    %any_stride = arith.ori %is_one, %is_compact : i1
    %good_stride = arith.ori %same_stride, %any_stride : i1
    %next_size_ok = arith.andi %size_ok, %same_size : i1
    %next_stride_ok = arith.andi %stride_ok, %good_stride : i1
    %next_compact = arith.muli %compact, %want : i64
    scf.yield %next_size_ok, %next_stride_ok, %next_compact : i1, i1, i64
  }
  %is_empty = arith.cmpi eq, %elements, %zero : i64
  %has_data = llvm.icmp "ne" %data, %null : !llvm.ptr
  %readable_data = arith.andi %fits_strides, %has_data : i1
  %good_data = arith.ori %readable_data, %is_empty : i1
  %good = arith.andi %fits, %good_data : i1
  return %good : i1
}

// Checks the rank and shape against the spec or, for a result that the caller allocates, that it can.
func.func private @fp8_abi_check_size(%call: !llvm.ptr, %tensor: !llvm.ptr, %spec: !llvm.ptr) -> i1 {
  %false = arith.constant false
  %zero = arith.constant 0 : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %rank_field = llvm.getelementptr %tensor[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %rank = llvm.load %rank_field : !llvm.ptr -> i32
  %want_rank_at = llvm.getelementptr %spec[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %want_rank64 = llvm.load %want_rank_at : !llvm.ptr -> i64
  %want_rank = arith.trunci %want_rank64 : i64 to i32
  %caller_allocates = arith.cmpi slt, %want_rank, %zero : i32
  %good = scf.if %caller_allocates -> i1 {
    %allocate_field = llvm.getelementptr %call[56] : (!llvm.ptr) -> !llvm.ptr, i8
    %allocate = llvm.load %allocate_field : !llvm.ptr -> !llvm.ptr
    %can = llvm.icmp "ne" %allocate, %null : !llvm.ptr
    scf.yield %can : i1
  } else {
    %same_rank = arith.cmpi eq, %rank, %want_rank : i32
    %shape_field = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %shape = llvm.load %shape_field : !llvm.ptr -> !llvm.ptr
    %has_shape = llvm.icmp "ne" %shape, %null : !llvm.ptr
    %needs_no_shape = arith.cmpi eq, %want_rank, %zero : i32
    %knows_shape = arith.ori %has_shape, %needs_no_shape : i1
    %readable = arith.andi %same_rank, %knows_shape : i1
    %shape_good = scf.if %readable -> i1 {
      %fits = func.call @fp8_abi_check_shape(%call, %tensor, %spec) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i1
      scf.yield %fits : i1
    } else {
      scf.yield %false : i1
    }
    scf.yield %shape_good : i1
  }
  return %good : i1
}

// Checks that a tensor is in memory of the kind `place` (DLDeviceType) and has the type and shape of the spec.
func.func private @fp8_abi_check_tensor(%call: !llvm.ptr, %tensor: !llvm.ptr, %place: i32, %spec: !llvm.ptr)
    -> i1 {
  %false = arith.constant false
  %null = llvm.mlir.zero : !llvm.ptr
  %is_given = llvm.icmp "ne" %tensor, %null : !llvm.ptr
  %good = scf.if %is_given -> i1 {
    %device_field = llvm.getelementptr %tensor[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %device = llvm.load %device_field : !llvm.ptr -> i32
    %type_field = llvm.getelementptr %tensor[20] : (!llvm.ptr) -> !llvm.ptr, i8
    %type = llvm.load %type_field : !llvm.ptr -> i32
    %want_type64 = llvm.load %spec : !llvm.ptr -> i64
    %want_type = arith.trunci %want_type64 : i64 to i32
    %same_device = arith.cmpi eq, %device, %place : i32
    %same_type = arith.cmpi eq, %type, %want_type : i32
    %both = arith.andi %same_device, %same_type : i1
    %size_good = scf.if %both -> i1 {
      %fits = func.call @fp8_abi_check_size(%call, %tensor, %spec) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i1
      scf.yield %fits : i1
    } else {
      scf.yield %false : i1
    }
    scf.yield %size_good : i1
  } else {
    scf.yield %false : i1
  }
  return %good : i1
}

// Fails with line `number` of `lines`. Correct calls never search `lines`.
func.func private @fp8_abi_fail_with_line(%call: !llvm.ptr, %lines: !llvm.ptr, %number: i64) -> i32 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %line = scf.for %i = %zero to %number step %one iter_args(%before = %lines) -> (!llvm.ptr) : i64 {
    %length = llvm.call @strlen(%before) : (!llvm.ptr) -> i64
    %step = arith.addi %length, %one : i64
    %next = llvm.getelementptr %before[%step] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    scf.yield %next : !llvm.ptr
  }
  %status = func.call @fp8_abi_fail(%call, %line) : (!llvm.ptr, !llvm.ptr) -> i32
  return %status : i32
}

// Checks `count` tensors, whose lines begin with number `first`; stops looking after the first
// bad one. A null array of tensors is one of null tensors. Returns the status, and where the specs of the next tensors begin.
func.func private @fp8_abi_check_tensors(%call: !llvm.ptr, %tensors: !llvm.ptr, %count: i64, %status: i32,
    %place: i32, %specs: !llvm.ptr, %lines: !llvm.ptr, %first: i64) -> (i32, !llvm.ptr) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %ok = arith.constant 0 : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %is_given = llvm.icmp "ne" %tensors, %null : !llvm.ptr
  %result:2 = scf.for %i = %zero to %count step %one
      iter_args(%state = %status, %spec = %specs) -> (i32, !llvm.ptr) : i64 {
    %good_so_far = arith.cmpi eq, %state, %ok : i32
    %next_state = scf.if %good_so_far -> i32 {
      %tensor = scf.if %is_given -> !llvm.ptr {
        %tensor_at = llvm.getelementptr %tensors[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
        %element = llvm.load %tensor_at : !llvm.ptr -> !llvm.ptr
        scf.yield %element : !llvm.ptr
      } else {
        scf.yield %null : !llvm.ptr
      }
      %good = func.call @fp8_abi_check_tensor(%call, %tensor, %place, %spec)
          : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i1
      %checked = scf.if %good -> i32 {
        scf.yield %ok : i32
      } else {
        %number = arith.addi %first, %i : i64
        %failed = func.call @fp8_abi_fail_with_line(%call, %lines, %number) : (!llvm.ptr, !llvm.ptr, i64) -> i32
        scf.yield %failed : i32
      }
      scf.yield %checked : i32
    } else {
      scf.yield %state : i32
    }
    %rank_at = llvm.getelementptr %spec[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %rank = llvm.load %rank_at : !llvm.ptr -> i64
    %sizes = arith.maxsi %rank, %zero : i64
    %words = arith.addi %sizes, %two : i64
    %next_spec = llvm.getelementptr %spec[%words] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    scf.yield %next_state, %next_spec : i32, !llvm.ptr
  }
  return %result#0, %result#1 : i32, !llvm.ptr
}

func.func private @fp8_abi_check_workspace(%call: !llvm.ptr, %bytes: i64, %alignment: i64) -> i1 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %mask = arith.subi %alignment, %one : i64
  %workspace_field = llvm.getelementptr %call[32] : (!llvm.ptr) -> !llvm.ptr, i8
  %workspace = llvm.load %workspace_field : !llvm.ptr -> !llvm.ptr
  %size_field = llvm.getelementptr %call[40] : (!llvm.ptr) -> !llvm.ptr, i8
  %size = llvm.load %size_field : !llvm.ptr -> i64
  %address = llvm.ptrtoint %workspace : !llvm.ptr to i64
  %low = arith.andi %address, %mask : i64
  %aligned = arith.cmpi eq, %low, %zero : i64
  %given = arith.cmpi ne, %address, %zero : i64
  %large = arith.cmpi uge, %size, %bytes : i64
  %fits = arith.andi %given, %large : i1
  %good = arith.andi %fits, %aligned : i1
  %unused = arith.cmpi eq, %bytes, %zero : i64
  %result = arith.ori %good, %unused : i1
  return %result : i1
}

// Checks that a call whose tensors are on a device (`place` is not that of the host) has a device whose
// version is 2 or a later one, which only has more functions.
func.func private @fp8_abi_check_device(%call: !llvm.ptr, %place: i32) -> i1 {
  %false = arith.constant false
  %true = arith.constant true
  %host = arith.constant 1 : i32
  %version = arith.constant 2 : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %is_host = arith.cmpi eq, %place, %host : i32
  %good = scf.if %is_host -> i1 {
    scf.yield %true : i1
  } else {
    %device_field = llvm.getelementptr %call[96] : (!llvm.ptr) -> !llvm.ptr, i8
    %device = llvm.load %device_field : !llvm.ptr -> !llvm.ptr
    %is_given = llvm.icmp "ne" %device, %null : !llvm.ptr
    %is_known = scf.if %is_given -> i1 {
      %given = llvm.load %device : !llvm.ptr -> i32
      %is_right = arith.cmpi uge, %given, %version : i32
      scf.yield %is_right : i1
    } else {
      scf.yield %false : i1
    }
    scf.yield %is_known : i1
  }
  return %good : i1
}

// Checks that a call of version 2 has no communicator, or one whose version is 1.
func.func private @fp8_abi_check_communicator(%call: !llvm.ptr, %version: i32) -> i1 {
  %true = arith.constant true
  %first = arith.constant 1 : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %is_first = arith.cmpi eq, %version, %first : i32
  %good = scf.if %is_first -> i1 {
    scf.yield %true : i1
  } else {
    %field = llvm.getelementptr %call[104] : (!llvm.ptr) -> !llvm.ptr, i8
    %communicator = llvm.load %field : !llvm.ptr -> !llvm.ptr
    %is_alone = llvm.icmp "eq" %communicator, %null : !llvm.ptr
    %is_known = scf.if %is_alone -> i1 {
      scf.yield %true : i1
    } else {
      %given = llvm.load %communicator : !llvm.ptr -> i32
      %is_right = arith.cmpi eq, %given, %first : i32
      scf.yield %is_right : i1
    }
    scf.yield %is_known : i1
  }
  return %good : i1
}

// Returns whether call->flags has a flag.
func.func private @fp8_abi_has_flag(%call: !llvm.ptr, %flag: i32) -> i1 {
  %zero = arith.constant 0 : i32
  %field = llvm.getelementptr %call[12] : (!llvm.ptr) -> !llvm.ptr, i8
  %flags = llvm.load %field : !llvm.ptr -> i32
  %found = arith.andi %flags, %flag : i32
  %has = arith.cmpi ne, %found, %zero : i32
  return %has : i1
}

func.func private @fp8_abi_check_call(%call: !llvm.ptr, %arguments: i32, %results: i32, %workspace: i64,
    %specs: !llvm.ptr, %lines: !llvm.ptr) -> i32 {
  %ok = arith.constant 0 : i32
  // Numbers of the first lines; the lines of the tensors follow.
  %version_line = arith.constant 0 : i64
  %count_line = arith.constant 1 : i64
  %workspace_line = arith.constant 2 : i64
  %argument_lines = arith.constant 3 : i64
  %checked_flag = arith.constant 2 : i32
  %needed64 = llvm.load %specs : !llvm.ptr -> i64
  %needed = arith.trunci %needed64 : i64 to i32
  %place_field = llvm.getelementptr %specs[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %place64 = llvm.load %place_field : !llvm.ptr -> i64
  %place = arith.trunci %place64 : i64 to i32
  %alignment_field = llvm.getelementptr %specs[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %alignment = llvm.load %alignment_field : !llvm.ptr -> i64
  %tensor_specs = llvm.getelementptr %specs[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %version = llvm.load %call : !llvm.ptr -> i32
  %right_version = arith.cmpi eq, %version, %needed : i32
  cf.cond_br %right_version, ^device, ^fail(%version_line : i64)
^device:
  %has_device = func.call @fp8_abi_check_device(%call, %place) : (!llvm.ptr, i32) -> i1
  %can_communicate = func.call @fp8_abi_check_communicator(%call, %needed) : (!llvm.ptr, i32) -> i1
  %has_both = arith.andi %has_device, %can_communicate : i1
  cf.cond_br %has_both, ^counts, ^fail(%version_line : i64)
^counts:
  %arguments_field = llvm.getelementptr %call[4] : (!llvm.ptr) -> !llvm.ptr, i8
  %num_arguments = llvm.load %arguments_field : !llvm.ptr -> i32
  %results_field = llvm.getelementptr %call[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %num_results = llvm.load %results_field : !llvm.ptr -> i32
  %same_arguments = arith.cmpi eq, %num_arguments, %arguments : i32
  %same_results = arith.cmpi eq, %num_results, %results : i32
  %same_counts = arith.andi %same_arguments, %same_results : i1
  cf.cond_br %same_counts, ^workspace, ^fail(%count_line : i64)
^workspace:
  %fits = func.call @fp8_abi_check_workspace(%call, %workspace, %alignment) : (!llvm.ptr, i64, i64) -> i1
  cf.cond_br %fits, ^checked, ^fail(%workspace_line : i64)
^checked:
  %is_checked = func.call @fp8_abi_has_flag(%call, %checked_flag) : (!llvm.ptr, i32) -> i1
  cf.cond_br %is_checked, ^good, ^tensors
^good:
  return %ok : i32
^tensors:
  %inputs_field = llvm.getelementptr %call[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %inputs = llvm.load %inputs_field : !llvm.ptr -> !llvm.ptr
  %outputs_field = llvm.getelementptr %call[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %outputs = llvm.load %outputs_field : !llvm.ptr -> !llvm.ptr
  %input_count = arith.extui %arguments : i32 to i64
  %output_count = arith.extui %results : i32 to i64
  %result_lines = arith.addi %argument_lines, %input_count : i64
  %first:2 = func.call @fp8_abi_check_tensors(%call, %inputs, %input_count, %ok, %place, %tensor_specs, %lines,
      %argument_lines) : (!llvm.ptr, !llvm.ptr, i64, i32, i32, !llvm.ptr, !llvm.ptr, i64) -> (i32, !llvm.ptr)
  %second:2 = func.call @fp8_abi_check_tensors(%call, %outputs, %output_count, %first#0, %place, %first#1, %lines,
      %result_lines) : (!llvm.ptr, !llvm.ptr, i64, i32, i32, !llvm.ptr, !llvm.ptr, i64) -> (i32, !llvm.ptr)
  return %second#0 : i32
^fail(%number: i64):
  %status = func.call @fp8_abi_fail_with_line(%call, %lines, %number) : (!llvm.ptr, !llvm.ptr, i64) -> i32
  return %status : i32
}
