// RUN: fp8-opt %s --split-input-file --fp8-lower-launches | FileCheck %s -enable-var-scope

// Every launch fills the same slots; the kernel is a number, a buffer an address or a descriptor's fields.
// CHECK-LABEL: gpu.module @kernels attributes {fp8.symbols = ["constant_0"]}
// CHECK: memref.global "public" constant @constant_0 : memref<4xf32> = dense<
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[a-z0-9]+]]: memref<8xf32>, %[[Y:[a-z0-9]+]]: memref<?x4xf32>, %[[N:[a-z0-9]+]]: index,
// CHECK-SAME: %[[S:[a-z0-9]+]]: i1, %[[FRAME:[a-z0-9]+]]: !llvm.ptr) -> i32 attributes {fp8.capturable = true}
// CHECK: %[[SLOTS:.*]] = llvm.alloca
// CHECK: %[[POINTERS:.*]] = llvm.alloca
// CHECK: %[[SLOT0:.*]] = llvm.getelementptr %[[SLOTS]][0]
// CHECK: %[[PLACE0:.*]] = llvm.getelementptr %[[POINTERS]][0]
// CHECK: llvm.store %[[SLOT0]], %[[PLACE0]]
// CHECK: %[[SLOT8:.*]] = llvm.getelementptr %[[SLOTS]][8]
// CHECK: %[[PLACE8:.*]] = llvm.getelementptr %[[POINTERS]][8]
// CHECK: llvm.store %[[SLOT8]], %[[PLACE8]]
// The address of a constant, once.
// CHECK: %[[CONSTANT:.*]] = call @fp8_abi_symbol(%[[FRAME]], %{{.*}}) : (!llvm.ptr, i32) -> !llvm.ptr
// CHECK: %[[FOUND:.*]] = llvm.icmp "ne" %[[CONSTANT]]
// CHECK: cf.assert %[[FOUND]], ""
// CHECK-NOT: fp8_abi_symbol
// CHECK: %[[GOOD:.*]] = call @fp8_abi_launch(%[[FRAME]], %{{.*}}, %[[POINTERS]])
// CHECK-SAME: {fp8.products = [{code = "tensor cores: mma.sync", role = "fprop", site = "fc"}]}
// CHECK: cf.assert %[[GOOD]], ""
// The kernel adds the offset of its argument's type, and not that of the operand.
// CHECK: %[[ADDRESS:.*]] = arith.addi
// CHECK: %[[FOUR:.*]] = arith.constant 16 : i64
// CHECK: %[[BASE:.*]] = arith.subi %[[ADDRESS]], %[[FOUR]]
// CHECK: llvm.store %[[BASE]]
// CHECK: call @fp8_abi_launch
// CHECK: extui %[[S]] : i1 to i8
// CHECK: %[[NUMBER:.*]] = arith.constant 2 : i32
// CHECK: %[[LINE:.*]] = arith.constant 7 : i32
// CHECK: call @fp8_abi_launch(%[[FRAME]], %[[NUMBER]], %[[LINE]]
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
      {fp8.products = [{site = "fc", role = "fprop", code = "tensor cores"}]}
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

// The innermost dimension of a tensor map is the first.
// CHECK-LABEL: func.func @map
// CHECK: llvm.alloca
// CHECK: llvm.alloca
// CHECK: %[[NUMBERS:.*]] = llvm.alloca
// CHECK: %[[SIZE:.*]] = arith.constant 48 : i64
// CHECK: llvm.store %[[SIZE]]
// CHECK: llvm.store %{{.*}} : i64
// CHECK: %[[BOX:.*]] = arith.constant 16 : i32
// CHECK: llvm.store %[[BOX]]
// CHECK: %[[ROWS:.*]] = arith.constant 100 : i64
// CHECK: llvm.store %[[ROWS]]
// CHECK: arith.constant 8 : i32
// CHECK: %[[GOOD:.*]] = call @fp8_abi_tensor_map
// CHECK: cf.assert %[[GOOD]], ""
// CHECK: call @fp8_abi_launch
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
// CHECK: %[[DEPTH:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: arith.maxui %[[DEPTH]], %c1_i64
// CHECK: %[[PITCH:.*]] = arith.muli %{{.*}}, %c2_i64
// CHECK: arith.maxui %{{.*}}, %c1_i64
// CHECK: arith.maxui %[[PITCH]], %c16_i64
// CHECK: call @fp8_abi_tensor_map
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
// CHECK-LABEL: func.func @table
// CHECK: %[[SLOTS:.*]] = llvm.alloca
// CHECK: %[[A:.*]] = llvm.getelementptr %[[SLOTS]][8]
// CHECK: %[[B:.*]] = llvm.getelementptr %[[SLOTS]][8]
// CHECK: llvm.store %{{.*}}, %[[B]] : i64
// CHECK: call @fp8_abi_launch

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
