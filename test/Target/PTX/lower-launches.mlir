// RUN: fp8-opt %s --split-input-file --fp8-lower-launches | FileCheck %s -enable-var-scope

// Launches that need nothing of the running program are data: the words of a record, its kernel, line, grid,
// bytes of a slot, and its parameters with the kind of each (LaunchRecords.h).
// CHECK-LABEL: gpu.module @kernels attributes {fp8.symbols = ["constant_0"]}
// CHECK: memref.global "public" constant @constant_0 : memref<4xf32> = dense<
// The product: twice the address of buffer 0, the constant.
// CHECK: @fp8_launches_main(dense<[14, 0, -1, 1, 1, 1, 8, 2, 1, 0, 0, 1, 0, 0,
// Kernel 1 adds the offset of its argument's type, 16 bytes, and not that of the operand, 8.
// CHECK-SAME: 11, 1, -1, 1, 1, 1, 8, 1, 1, 1, -8,
// A descriptor: twice the address, offset 0, a size that the host stores, 4, and the strides. Then two numbers that the
// host stores, as the grid.
// CHECK-SAME: 35, 2, 7, -1, -1, -1, 8, 9, 1, 2, 0, 1, 2, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 4, 0, 0, 1, 0,
// CHECK-SAME: 3, 0, 0, 3, 0, 0]> : tensor<60xi64>)
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<8xf32>, %[[Y:[a-z0-9]+]]: memref<?x4xf32>, %[[N:[a-z0-9]+]]: index,
// CHECK-SAME: %[[S:[a-z0-9]+]]: i1, %[[FRAME:[a-z0-9]+]]: !llvm.ptr) -> i32 attributes {fp8.capturable = true}
// CHECK: %[[SLOTS:.*]] = llvm.alloca
// CHECK: %[[POINTERS:.*]] = llvm.alloca
// CHECK: %[[BUFFERS:.*]] = llvm.alloca
// CHECK: %[[START:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[BUFFERS]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[ADDRESS:.*]] = arith.index_cast %[[START]]
// CHECK: llvm.store %[[ADDRESS]], %[[PLACE]]
// CHECK: %[[GRID:.*]] = llvm.alloca
// The address of a constant, once.
// CHECK: %[[CONSTANT:.*]] = call @fp8_abi_symbol(%[[FRAME]], %{{.*}}) : (!llvm.ptr, i32) -> !llvm.ptr
// CHECK: %[[FOUND:.*]] = llvm.icmp "ne" %[[CONSTANT]]
// CHECK: cf.assert %[[FOUND]], ""
// CHECK-NOT: fp8_abi_symbol
// One call for both launches.
// CHECK: %[[RECORDS:.*]] = llvm.mlir.addressof @fp8_launches_main
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[RECORDS]][0] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[TWO:.*]] = arith.constant 2 : i64
// CHECK: %[[GOOD:.*]] = call @fp8_abi_launch_all(%[[FRAME]], %[[FIRST]], %[[TWO]], %[[BUFFERS]], %[[SLOTS]], %[[POINTERS]], %[[GRID]])
// CHECK-SAME: {fp8.matmuls = [{code = "tensor cores: mma.sync", location = "{{.*}}lower-launches.mlir:{{[0-9]+}}:5", role = "fprop", site = "fc"}]}
// CHECK: cf.assert %[[GOOD]], ""
// CHECK: %[[SIZE:.*]] = arith.index_cast %{{.*}}#0 : index to i64
// CHECK: %[[SIZE_SLOT:.*]] = llvm.getelementptr %[[SLOTS]][24]
// CHECK: llvm.store %[[SIZE]], %[[SIZE_SLOT]]
// CHECK: %[[BYTE:.*]] = arith.extui %[[S]] : i1 to i8
// CHECK: %[[LAST_SLOT:.*]] = llvm.getelementptr %[[SLOTS]][64]
// CHECK: llvm.store %[[BYTE]], %[[LAST_SLOT]]
// CHECK: %[[WIDTH:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK: %[[WIDTH_SLOT:.*]] = llvm.getelementptr %[[GRID]][0]
// CHECK: llvm.store %[[WIDTH]], %[[WIDTH_SLOT]]
// CHECK: %[[LAST:.*]] = llvm.getelementptr %{{.*}}[25] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: call @fp8_abi_launch_all(%[[FRAME]], %[[LAST]], %{{.*}}, %[[BUFFERS]], %[[SLOTS]], %[[POINTERS]], %[[GRID]]) :
module attributes {gpu.container_module} {
  memref.global "private" constant @"a constant" : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
  gpu.module @kernels {
    func.func @product(%x: memref<4xf32>, %y: memref<4xf32>)
        attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32, fp8.instruction = "mma.sync"} {
      return
    }
    func.func @offset(%x: memref<4xf32, strided<[1], offset: 4>>)
        attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32} {
      return
    }
    func.func @dynamic(%x: memref<?x4xf32>, %n: index, %s: i1) attributes {gpu.kernel, fp8.threads = 4 : i32} {
      return
    }
  }
  func.func @main(%x: memref<8xf32>, %y: memref<?x4xf32>, %n: index, %s: i1, %frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %g = memref.get_global @"a constant" : memref<4xf32>
    %h = memref.get_global @"a constant" : memref<4xf32>
    gpu.launch_func @kernels::@product blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%g : memref<4xf32>, %h : memref<4xf32>)
      {fp8.matmuls = [{site = "fc", role = "fprop", code = "tensor cores"}]}
    %v = memref.subview %x[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
    gpu.launch_func @kernels::@offset blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%v : memref<4xf32, strided<[1], offset: 2>>)
    gpu.launch_func @kernels::@dynamic blocks in (%n, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%y : memref<?x4xf32>, %n : index, %s : i1) {fp8.kernel_number = 7 : i32}
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}

// -----

// The innermost dimension of a tensor map is the first: type, rank, swizzle, sizes 48 and 100, strides 2 and 128 bytes,
// the box 16 x 8 in one word.
// CHECK: @fp8_launches_map(dense<[30, 0, -1, 1, 1, 1, 128, 2, 2, 0, 0, 1, 2, 128, 48, 100, 0, 0, 0, 2, 128, 0, 0, 0,
// CHECK-SAME: 34359738384, 0, 0, 3, 0, 0]>
// CHECK-LABEL: func.func @map(
// CHECK-NOT: fp8_abi_tensor_map
// CHECK: call @fp8_abi_launch_all
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @k(%x: !llvm.ptr {fp8.tensor_map = {box = array<i64: 16, 8>, swizzle = 128 : i32}}, %n: i32)
        attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32} {
      return
    }
  }
  func.func @map(%x: memref<100x48xbf16, strided<[64, 1]>>, %n: i32, %frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%x : memref<100x48xbf16, strided<[64, 1]>>, %n : i32)
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}

// -----

// A map has no empty dimension and no stride of 0, whatever the size is when the program runs.
// CHECK-LABEL: func.func @map_of_any_sizes
// CHECK: %[[DEPTH:.*]] = arith.index_cast %{{.*}}#1 : index to i64
// CHECK: arith.maxui %[[DEPTH]], %c1_i64{{.*}} : i64
// CHECK: %[[PITCH:.*]] = arith.muli %{{.*}}, %c2_i64{{.*}} : i64
// CHECK: arith.maxui %{{.*}}, %c1_i64{{.*}} : i64
// CHECK: arith.maxui %[[PITCH]], %c16_i64{{.*}} : i64
// CHECK: call @fp8_abi_tensor_map
// CHECK: cf.assert
// CHECK: call @fp8_abi_launch_all
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @k(%x: !llvm.ptr {fp8.tensor_map = {box = array<i64: 16, 8>, swizzle = 128 : i32}})
        attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32} {
      return
    }
  }
  func.func @map_of_any_sizes(%x: memref<?x?xbf16>, %frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%x : memref<?x?xbf16>)
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}

// -----

// A table: the first slots, one after the other.
// CHECK: @fp8_launches_table(dense<[14, 0, -1, 1, 1, 1, 8, 2, 1, 0, 0, 3, 0, 0]>
// CHECK-LABEL: func.func @table
// CHECK: %[[SLOTS:.*]] = llvm.alloca
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[SLOTS]][8]
// CHECK: llvm.store %{{.*}}, %[[SECOND]] : i64
// CHECK: call @fp8_abi_launch

// The condition of an assertion is checked on the device, and the work can be captured.
// CHECK: llvm.mlir.global internal constant @fp8_check_check_0("positive (step.mlir:7:3)\00")
// CHECK-LABEL: func.func @check
// CHECK-SAME: attributes {fp8.capturable = true, fp8.checks = 1 : i64}
// CHECK: %[[MESSAGE:.*]] = llvm.mlir.addressof @fp8_check_check_0
// CHECK: %[[FLAG:.*]] = llvm.inttoptr
// CHECK: %[[GOOD:.*]] = call @fp8_abi_check(%{{.*}}, %[[FLAG]], %[[MESSAGE]]) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i1
// CHECK-NEXT: cf.assert %[[GOOD]], ""
// CHECK-NEXT: arith.constant

// Not one that the host decides by as well, nor one in a branch.
// CHECK-LABEL: func.func @check_and_condition
// CHECK-SAME: attributes {fp8.capturable = false}
// CHECK-COUNT-2: call @fp8_abi_read
// CHECK: cf.assert %{{.*}}, "both"

// A value that the host needs is read where it is needed.
// CHECK-LABEL: func.func @condition
// CHECK-SAME: attributes {fp8.capturable = false}
// CHECK: %[[SLOT:.*]] = llvm.alloca
// CHECK: call @fp8_abi_read(%{{.*}}, %[[SLOT]], %{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> i1
// CHECK: cf.assert
// CHECK: %[[BYTE:.*]] = llvm.load %[[SLOT]] : !llvm.ptr -> i8
// CHECK: %[[C:.*]] = arith.trunci %[[BYTE]] : i8 to i1
// CHECK: scf.if %[[C]]
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @k(%table: !llvm.ptr {fp8.operand_table = 2 : i32})
        attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32} {
      return
    }
  }
  func.func @table(%x: memref<4xf32>, %n: index, %frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%x : memref<4xf32>, %n : index)
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
  func.func @check(%x: memref<i1>, %frame: !llvm.ptr) -> i32 {
    %c = memref.load %x[] : memref<i1>
    cf.assert %c, "positive" loc("step.mlir":7:3)
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
  func.func @check_and_condition(%x: memref<i1>, %y: memref<i1>, %z: memref<i32>, %frame: !llvm.ptr) -> i32 {
    %c = memref.load %x[] : memref<i1>
    %d = memref.load %y[] : memref<i1>
    %ok = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r = arith.select %c, %ok, %one : i32
    scf.if %c {
      cf.assert %d, "in a branch"
    }
    cf.assert %c, "both"
    return %r : i32
  }
  func.func @condition(%x: memref<i1>, %y: memref<4xf32>, %n: index, %frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c = memref.load %x[] : memref<i1>
    scf.if %c {
      gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%y : memref<4xf32>, %n : index)
    }
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}

// -----

// Kernels count in 32 bits: a size that only the call knows is compared first. One that is a constant was
// compared when the kernel was built, and one of 64 bits needs no comparison.
// CHECK-LABEL: func.func @sizes
// CHECK: %[[MOST:.*]] = arith.constant 2147483136 : index
// CHECK: %[[M:.*]] = arith.cmpi sle, %arg0, %[[MOST]] : index
// CHECK: %[[N:.*]] = arith.cmpi sle, %arg1, %{{.*}} : index
// CHECK: %[[FITS:.*]] = arith.andi %[[M]], %[[N]] : i1
// CHECK: cf.assert %[[FITS]], "kernel 'counts' of fc counts to 2147483136, and a size of this call is more: compile the program with this size in place of '?', for code that counts further"
// CHECK-NOT: arith.cmpi
// CHECK: call @fp8_abi_launch
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @counts(%m: i32, %n: i32, %k: i32, %pitch: i64)
        attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32} {
      return
    }
  }
  func.func @sizes(%arg0: index, %arg1: index, %frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %m = arith.index_cast %arg0 : index to i32
    %n = arith.index_cast %arg1 : index to i32
    %k = arith.index_cast %c4 : index to i32
    %pitch = arith.index_cast %arg0 : index to i64
    gpu.launch_func @kernels::@counts blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%m : i32, %n : i32, %k : i32, %pitch : i64) {fp8.kernel_site = "fc"}
    %zero = arith.constant 0 : i32
    return %zero : i32
  }
}

// -----

// Bits of constants: true is 1 as an i1, and -1 as the index that a signed cast makes of it.
// CHECK: @fp8_launches_constants(dense<[17, 0, -1, 1, 1, 1, 8, 3, 0, 1, 0, 0, -1, 0, 0, 1065353216, 0]>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @k(%a: i1, %b: index, %c: f32) attributes {gpu.kernel, llvm.bareptr, fp8.threads = 4 : i32} {
      return
    }
  }
  func.func @constants(%frame: !llvm.ptr) -> i32 {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %true = arith.constant true
    %index = arith.index_cast %true : i1 to index
    %one = arith.constant 1.0 : f32
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%true : i1, %index : index, %one : f32)
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}
