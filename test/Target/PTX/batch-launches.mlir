// RUN: fp8-opt %s -split-input-file --fp8-batch-launches | FileCheck %s -enable-var-scope

// Both steps of two chains a -> b are joined: the launches of @a come first. Costs add
// up; of one, no operations are known.
// CHECK: gpu.module @kernels
// CHECK-NOT: func.func @a(
// CHECK: func.func @a_batch_2(%[[TABLE:.*]]: !llvm.ptr {fp8.operand_table = 4 : i32})
// CHECK: nvvm.read.ptx.sreg.ctaid.y
// CHECK: llvm.getelementptr %[[TABLE]]
// CHECK: func.func @b_batch_2(%{{.*}}: !llvm.ptr {fp8.operand_table = 4 : i32})
// CHECK-LABEL: func.func @chains(
// CHECK-SAME: %[[X:.*]]: memref<32xf32>, %[[Y:.*]]: memref<32xf32>)
// CHECK: gpu.launch_func @kernels::@a_batch_2 blocks in (%{{.*}}, %[[TWO:.*]], %{{.*}}) threads in {{.*}} args(%[[X]] : memref<32xf32>, %[[T:.*]] : memref<32xf32>, %[[Y]] : memref<32xf32>, %[[U:.*]] : memref<32xf32>) {fp8.kernel_cost = {read = 256 : i64, written = 224 : i64}, fp8.kernel_site = ["p", "q"]}
// CHECK: gpu.launch_func @kernels::@b_batch_2 blocks {{.*}} args(%[[T]] : memref<32xf32>, %[[X]] : memref<32xf32>, %[[U]] : memref<32xf32>, %[[Y]] : memref<32xf32>)
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @a(%x: memref<32xf32>, %y: memref<32xf32>) attributes {fp8.threads = 32 : i32, gpu.kernel, llvm.bareptr} {
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %i = arith.index_castui %thread : i32 to index
      %0 = memref.load %x[%i] : memref<32xf32>
      memref.store %0, %y[%i] : memref<32xf32>
      return
    }
    func.func @b(%x: memref<32xf32>, %y: memref<32xf32>) attributes {fp8.threads = 32 : i32, gpu.kernel, llvm.bareptr} {
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %i = arith.index_castui %thread : i32 to index
      %0 = memref.load %x[%i] : memref<32xf32>
      %1 = arith.negf %0 : f32
      memref.store %1, %y[%i] : memref<32xf32>
      return
    }
  }
  func.func @chains(%x: memref<32xf32>, %y: memref<32xf32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %t = memref.alloc() : memref<32xf32>
    gpu.launch_func @kernels::@a blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<32xf32>, %t : memref<32xf32>)
        {fp8.kernel_cost = {operations = 32 : i64, read = 128 : i64, written = 128 : i64}, fp8.kernel_site = "p"}
    gpu.launch_func @kernels::@b blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%t : memref<32xf32>, %x : memref<32xf32>) {fp8.kernel_site = "p"}
    %u = memref.alloc() : memref<32xf32>
    gpu.launch_func @kernels::@a blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%y : memref<32xf32>, %u : memref<32xf32>)
        {fp8.kernel_cost = {read = 128 : i64, written = 96 : i64}, fp8.kernel_site = "q"}
    gpu.launch_func @kernels::@b blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%u : memref<32xf32>, %y : memref<32xf32>) {fp8.kernel_site = "q"}
    return
  }
}

// -----

// A chain through one buffer, a view of the same buffer, another grid, a read of the host in between, and a
// kernel that uses the grid's second dimension: nothing is joined.
// CHECK-LABEL: func.func @dependent(
// CHECK: @kernels::@next {{.*}} args(%[[Z:.*]] : memref<64xf32>, %[[W:.*]] : memref<64xf32>)
// CHECK: @kernels::@next {{.*}} args(%[[X:.*]] : memref<64xf32>, %[[Y:.*]] : memref<64xf32>)
// CHECK: @kernels::@next {{.*}} args(%[[Y]] : memref<64xf32>, %[[X]] : memref<64xf32>)
// CHECK: memref.load
// CHECK: @kernels::@next {{.*}} args(%[[W]] : memref<64xf32>, %[[Z]] : memref<64xf32>)
// CHECK: @kernels::@grid
// CHECK: @kernels::@grid
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @next(%x: memref<64xf32>, %y: memref<64xf32>) attributes {fp8.threads = 32 : i32, gpu.kernel, llvm.bareptr} {
      %c0 = arith.constant 0 : index
      %0 = memref.load %x[%c0] : memref<64xf32>
      memref.store %0, %y[%c0] : memref<64xf32>
      return
    }
    func.func @grid(%x: memref<64xf32>) attributes {fp8.threads = 32 : i32, gpu.kernel, llvm.bareptr} {
      %zero = arith.constant 0.0 : f32
      %block = nvvm.read.ptx.sreg.ctaid.y : i32
      %i = arith.index_castui %block : i32 to index
      memref.store %zero, %x[%i] : memref<64xf32>
      return
    }
  }
  func.func @dependent(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %w: memref<64xf32>, %flag: memref<i1>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@next blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<64xf32>, %y : memref<64xf32>)
    gpu.launch_func @kernels::@next blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%y : memref<64xf32>, %x : memref<64xf32>)
    gpu.launch_func @kernels::@next blocks in (%c32, %c1, %c1) threads in (%c32, %c1, %c1) args(%z : memref<64xf32>, %w : memref<64xf32>)
    %0 = memref.load %flag[] : memref<i1>
    gpu.launch_func @kernels::@next blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%w : memref<64xf32>, %z : memref<64xf32>)
    cf.assert %0, "flag"
    gpu.launch_func @kernels::@grid blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<64xf32>)
    gpu.launch_func @kernels::@grid blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%y : memref<64xf32>)
    return
  }
}

// -----

// Vectors are read and written as elements are: one buffer that is only read does not keep its copies apart.
// CHECK-LABEL: func.func @copies(
// CHECK: @kernels::@copy_batch_2
// CHECK-NOT: gpu.launch_func
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) attributes {fp8.threads = 16 : i32, gpu.kernel, llvm.bareptr} {
      %c4 = arith.constant 4 : index
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %number = arith.index_castui %thread : i32 to index
      %i = arith.muli %number, %c4 : index
      %0 = vector.load %x[%i] : memref<64xf32>, vector<4xf32>
      vector.store %0, %y[%i] : memref<64xf32>, vector<4xf32>
      return
    }
  }
  func.func @copies(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%x : memref<64xf32>, %y : memref<64xf32>)
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%x : memref<64xf32>, %z : memref<64xf32>)
    return
  }
}
