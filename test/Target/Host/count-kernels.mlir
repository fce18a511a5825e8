// RUN: fp8-opt %s --split-input-file --fp8-count-kernels | FileCheck %s -enable-var-scope

// One line for all calls of a kernel, with the sites of all. 1 read and 1 written buffer of 32 bytes; two operations per element.
// CHECK: fp8.kernels = [{kind = "elementwise", name = "scale", operations = 16 : i64, read = 32 : i64, sites = ["h0", "h1"], written = 32 : i64}]
// CHECK: call @kernel_scale(%arg0, %arg1) {fp8.kernel_number = 0 : i32
// CHECK: call @kernel_scale(%arg1, %arg0) {fp8.kernel_number = 0 : i32
func.func @elementwise(%a: memref<8xf32>, %b: memref<8xf32>) {
  call @kernel_scale(%a, %b) {fp8.kernel_site = "h0"} : (memref<8xf32>, memref<8xf32>) -> ()
  call @kernel_scale(%b, %a) {fp8.kernel_site = "h1"} : (memref<8xf32>, memref<8xf32>) -> ()
  return
}
#id = affine_map<(i) -> (i)>
func.func private @kernel_scale(%x: memref<8xf32>, %y: memref<8xf32>) attributes {fp8.kernel_kind = "elementwise"} {
  %two = arith.constant 2.0 : f32
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %two : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// A function for several shapes has a line for each, and for each role; the sizes are those before the casts.
// The product is told by its mark: 2 * 4 * 8 * 16. Three buffers of 32, 128 and 64 elements, of which the last is written.
// CHECK: fp8.kernels = [
// CHECK-SAME: {kind = "products", name = "product_fprop_fc1", operations = 1024 : i64, read = 384 : i64, sites = ["fc1", "fc2"], written = 256 : i64},
// CHECK-SAME: {kind = "products", name = "product_dgrad_fc1", operations = 1024 : i64, read = 384 : i64, sites = ["fc1"], written = 256 : i64},
// CHECK-SAME: {kind = "products", name = "product_fprop_fc3", read = 448 : i64, sites = ["fc3"], written = 320 : i64}]
func.func @products(%a: memref<32xf32>, %b: memref<128xf32>, %c: memref<64xf32>, %d: memref<80xf32>) {
  %0 = memref.cast %a : memref<32xf32> to memref<?xf32>
  %1 = memref.cast %b : memref<128xf32> to memref<?xf32>
  %2 = memref.cast %c : memref<64xf32> to memref<?xf32>
  %3 = memref.cast %d : memref<80xf32> to memref<?xf32>
  call @gemm(%0, %1, %2) {fp8.matmuls = [{code = "x", operations = 1024 : i64, role = "fprop", site = "fc1"}]} : (memref<?xf32>, memref<?xf32>, memref<?xf32>) -> ()
  call @gemm(%0, %1, %2) {fp8.matmuls = [{code = "x", operations = 1024 : i64, role = "fprop", site = "fc2"}]} : (memref<?xf32>, memref<?xf32>, memref<?xf32>) -> ()
  call @gemm(%0, %1, %2) {fp8.matmuls = [{code = "x", operations = 1024 : i64, role = "dgrad", site = "fc1"}]} : (memref<?xf32>, memref<?xf32>, memref<?xf32>) -> ()
  call @gemm(%0, %1, %3) {fp8.matmuls = [{code = "x", role = "fprop", site = "fc3"}]} : (memref<?xf32>, memref<?xf32>, memref<?xf32>) -> ()
  return
}
func.func private @gemm(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %c, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %0 = memref.load %a[%i] : memref<?xf32>
    %1 = memref.load %b[%i] : memref<?xf32>
    %2 = arith.mulf %0, %1 : f32
    memref.store %2, %c[%i] : memref<?xf32>
  }
  return
}

// -----

// Of the table of 1,000 rows, the loop reads 8 elements, which a prefetch does not change; each element of %x counts once, although it is read 4 times.
// A temporary of the kernel is nothing from outside. 4 * 8 additions, and 4 * 8 lanes of multiply-adds.
// CHECK: fp8.kernels = [{kind = "rows", name = "k", operations = 96 : i64, read = 96 : i64, sites = [], written = 128 : i64}]
func.func @loops(%table: memref<1000xf32>, %x: memref<8xf64>, %y: memref<4x8xf32>) {
  call @k(%table, %x, %y) : (memref<1000xf32>, memref<8xf64>, memref<4x8xf32>) -> ()
  return
}
#id = affine_map<(i) -> (i)>
func.func private @k(%table: memref<1000xf32>, %x: memref<8xf64>, %y: memref<4x8xf32>) attributes {fp8.kernel_kind = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c8) step (%c2) {
    %temporary = memref.alloca() : memref<8xf64>
    %row = memref.subview %y[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<8xf64>) outs(%temporary : memref<8xf64>) {
    ^bb0(%in: f64, %out: f64):
      %0 = arith.addf %in, %in : f64
      linalg.yield %0 : f64
    }
    memref.prefetch %table[%i], read, locality<3>, data : memref<1000xf32>
    %lanes = vector.load %table[%i] : memref<1000xf32>, vector<2xf32>
    %wide = vector.broadcast %zero : f32 to vector<8xf32>
    %sum = vector.fma %wide, %wide, %wide : vector<8xf32>
    vector.store %sum, %row[%c0] : memref<8xf32, strided<[1], offset: ?>>, vector<8xf32>
  }
  return
}

// -----

// Nothing is known of dynamic sizes; a function without code is no kernel.
// CHECK: fp8.kernels = [{kind = "elementwise", name = "exp", sites = []}]
// CHECK: call @elsewhere() : () -> ()
func.func @dynamic(%a: memref<?xf32>) {
  call @kernel_exp(%a) : (memref<?xf32>) -> ()
  call @elsewhere() : () -> ()
  return
}
func.func private @elsewhere()
func.func private @kernel_exp(%x: memref<?xf32>) attributes {fp8.kernel_kind = "elementwise"} {
  linalg.exp ins(%x : memref<?xf32>) outs(%x : memref<?xf32>)
  return
}

// -----

// The bounds of a loop are known from the call: sizes of buffers that a caller passes as numbers or whose
// types have lost them. Calls with other numbers are lines of their own.
// CHECK: fp8.kernels = [
// CHECK-SAME: {kind = "epilogues", name = "pack", operations = 8 : i64, read = 32 : i64, sites = [], written = 0 : i64},
// CHECK-SAME: {kind = "epilogues", name = "pack_2", operations = 4 : i64, read = 16 : i64, sites = [], written = 0 : i64}]
func.func @sizes(%a: memref<8xf32>, %b: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %cast = memref.cast %a : memref<8xf32> to memref<?xf32>
  %n = memref.dim %cast, %c0 : memref<?xf32>
  %m = memref.dim %b, %c0 : memref<4xf32>
  call @kernel_pack(%cast, %n) : (memref<?xf32>, index) -> ()
  call @kernel_pack(%cast, %m) : (memref<?xf32>, index) -> ()
  return
}
func.func private @kernel_pack(%x: memref<?xf32>, %n: index) attributes {fp8.kernel_kind = "epilogues"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = memref.dim %x, %c0 : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf32>
    %1 = arith.mulf %0, %0 : f32
  }
  scf.for %i = %size to %size step %c1 {
    %0 = memref.load %x[%i] : memref<?xf32>
    %1 = arith.mulf %0, %0 : f32
  }
  return
}

// -----

// Tiles count as full ones: 4 times 4 elements.
// CHECK: fp8.kernels = [{kind = "epilogues", name = "tiles", operations = 16 : i64, read = 56 : i64, sites = [], written = 0 : i64}]
func.func @tiles(%a: memref<14xf32>) {
  call @kernel_tiles(%a) : (memref<14xf32>) -> ()
  return
}
func.func private @kernel_tiles(%x: memref<14xf32>) attributes {fp8.kernel_kind = "epilogues"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c14 = arith.constant 14 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %first = arith.muli %i, %c4 : index
    %next = arith.addi %first, %c4 : index
    %end = arith.minui %next, %c14 : index
    scf.for %j = %first to %end step %c1 {
      %0 = memref.load %x[%j] : memref<14xf32>
      %1 = arith.mulf %0, %0 : f32
    }
  }
  return
}

// -----

// Launches are marked with their costs: one line for launches of one kernel with equal costs. A launch may be for several sites,
// and its cost unknown. The operations of products are those of their marks.
// CHECK: fp8.kernels = [
// CHECK-SAME: {kind = "casts", name = "quantize", read = 64 : i64, sites = ["h0", "h1", "h2"], written = 16 : i64},
// CHECK-SAME: {kind = "casts", name = "quantize_2", sites = []},
// CHECK-SAME: {kind = "products", name = "product_fprop_fc1", operations = 1024 : i64, read = 96 : i64, sites = ["fc1", "fc2"], written = 32 : i64},
// CHECK-SAME: {kind = "products", name = "product_dgrad_fc1", operations = 1024 : i64, read = 96 : i64, sites = ["fc1"], written = 32 : i64}]
// CHECK: gpu.launch_func @kernels::@kernel_quantize {{.*}} {fp8.kernel_number = 0 : i32, fp8.kernel_site = ["h0", "h1"]}
// CHECK: gpu.launch_func @kernels::@kernel_quantize {{.*}} {fp8.kernel_number = 0 : i32, fp8.kernel_site = "h2"}
// CHECK: gpu.launch_func @kernels::@kernel_quantize {{.*}} {fp8.kernel_number = 1 : i32}
// CHECK: gpu.launch_func @kernels::@kernel_product_fprop_fc1 {{.*}} {fp8.kernel_number = 2 : i32
// CHECK: gpu.launch_func @kernels::@kernel_product_fprop_fc1 {{.*}} {fp8.kernel_number = 2 : i32
// CHECK: gpu.launch_func @kernels::@kernel_product_fprop_fc1 {{.*}} {fp8.kernel_number = 3 : i32
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func @kernel_quantize(%x: memref<16xf32>) attributes {fp8.kernel_kind = "casts", fp8.threads = 32 : i32, gpu.kernel, llvm.bareptr} {
      return
    }
    func.func @kernel_product_fprop_fc1(%x: memref<16xf32>) attributes {fp8.kernel_kind = "products", fp8.threads = 32 : i32, gpu.kernel, llvm.bareptr} {
      return
    }
  }
  func.func @launches(%x: memref<16xf32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@kernel_quantize blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<16xf32>)
        {fp8.kernel_cost = {read = 64 : i64, written = 16 : i64}, fp8.kernel_site = ["h0", "h1"]}
    gpu.launch_func @kernels::@kernel_quantize blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<16xf32>)
        {fp8.kernel_cost = {read = 64 : i64, written = 16 : i64}, fp8.kernel_site = "h2"}
    gpu.launch_func @kernels::@kernel_quantize blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<16xf32>)
    gpu.launch_func @kernels::@kernel_product_fprop_fc1 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<16xf32>)
        {fp8.kernel_cost = {read = 96 : i64, written = 32 : i64}, fp8.matmuls = [{code = "x", operations = 1024 : i64, role = "fprop", site = "fc1"}]}
    gpu.launch_func @kernels::@kernel_product_fprop_fc1 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<16xf32>)
        {fp8.kernel_cost = {read = 96 : i64, written = 32 : i64}, fp8.matmuls = [{code = "x", operations = 1024 : i64, role = "fprop", site = "fc2"}]}
    gpu.launch_func @kernels::@kernel_product_fprop_fc1 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<16xf32>)
        {fp8.kernel_cost = {read = 96 : i64, written = 32 : i64}, fp8.matmuls = [{code = "x", operations = 1024 : i64, role = "dgrad", site = "fc1"}]}
    return
  }
}
