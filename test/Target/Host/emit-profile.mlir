// RUN: fp8-opt %s --split-input-file --fp8-emit-profile | FileCheck %s -enable-var-scope

// Kernels record their own ends, functions with several numbers are recorded by the caller, and so is
// other code before a kernel that takes time.
// CHECK-LABEL: func @fp8_call_main
// CHECK: %[[PROFILE:.*]] = call @fp8_abi_profile(%arg0)
// CHECK: call @fp8_entry_main(%[[PROFILE]], %{{.*}})
// CHECK-LABEL: func private @fp8_entry_main
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr, %[[X:.*]]: memref<8xf32>)
// CHECK: %[[OUTSIDE:.*]] = arith.constant -1
// CHECK: call @fp8_abi_record(%[[P]], %[[OUTSIDE]])
// CHECK: call @kernel_a(%[[P]], %[[X]]) : (!llvm.ptr, memref<8xf32>) -> ()
// CHECK-NOT: fp8_abi_record
// CHECK: call @gemm(%{{[^,]*}}) : (memref<4xf32, strided<[1]>>) -> ()
// CHECK: %[[B:.*]] = arith.constant 1 : i32
// CHECK: call @fp8_abi_record(%[[P]], %[[B]])
// CHECK: call @gemm
// CHECK: %[[C:.*]] = arith.constant 2 : i32
// CHECK: call @fp8_abi_record(%[[P]], %[[C]])
// CHECK: memref.store
// CHECK-NOT: fp8_abi_record
// CHECK: call @kernel_a
// CHECK-NOT: fp8_abi_record
// CHECK: scf.for
// CHECK: %[[LOOP:.*]] = arith.constant -1
// CHECK: func.call @fp8_abi_record(%[[P]], %[[LOOP]])
// CHECK: func.call @kernel_a(%[[P]], %[[X]])
// CHECK-NEXT: }
// CHECK: call @fp8_abi_record(%[[P]],
// CHECK: call @kernel_b(%[[X]])
// CHECK: %[[D:.*]] = arith.constant 3 : i32
// CHECK: call @fp8_abi_record(%[[P]], %[[D]])
// CHECK: scf.parallel
// CHECK-NOT: fp8_abi_record
// CHECK: return
// CHECK-LABEL: func private @kernel_a
// CHECK-SAME: (%[[Q:.*]]: !llvm.ptr, %{{.*}}: memref<8xf32> {llvm.noalias})
// CHECK: memref.store
// CHECK: %[[A:.*]] = arith.constant 0 : i32
// CHECK: call @fp8_abi_record(%[[Q]], %[[A]])
// CHECK-NEXT: return
// CHECK-LABEL: func private @kernel_b
// CHECK-NOT: fp8_abi_record
// CHECK-LABEL: func private @gemm
// CHECK-NOT: call @fp8_abi_record
// CHECK: llvm.mlir.global internal constant @fp8_kernels_text("{\22kernels\22:[{\22kind\22:\22elementwise\22,\22name\22:\22a\22,\22operations\22:8,\22read\22:32,\22sites\22:[0,1],\22written\22:32},{\22kind\22:\22copies\22,\22name\22:\22b\22,\22operations\22:null,\22read\22:null,\22sites\22:[1],\22written\22:null},{{.*}}],\22sites\22:[\22h0/a\22,\22h1/a\22]}\00")
// CHECK: llvm.func @fp8_kernels() -> !llvm.ptr
module attributes {fp8.kernels = [
    {kind = "elementwise", name = "a", operations = 8 : i64, read = 32 : i64, sites = ["h0/a", "h1/a"], written = 32 : i64},
    {kind = "copies", name = "b", sites = ["h1/a"]},
    {kind = "copies", name = "c", sites = []},
    {kind = "copies", name = "d", sites = []}]} {
  func.func @fp8_call_main(%call: !llvm.ptr) {
    %x = memref.alloca() : memref<8xf32>
    call @fp8_entry_main(%x) : (memref<8xf32>) -> ()
    return
  }
  func.func private @fp8_entry_main(%x: memref<8xf32>) {
    call @kernel_a(%x) {fp8.kernel_number = 0 : i32} : (memref<8xf32>) -> ()
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    %part = memref.subview %x[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
    call @gemm(%part) {fp8.kernel_number = 1 : i32} : (memref<4xf32, strided<[1]>>) -> ()
    call @gemm(%part) {fp8.kernel_number = 2 : i32} : (memref<4xf32, strided<[1]>>) -> ()
    memref.store %zero, %x[%c0] : memref<8xf32>
    call @kernel_a(%x) {fp8.kernel_number = 0 : i32} : (memref<8xf32>) -> ()
    scf.for %i = %c0 to %c4 step %c1 {
      func.call @kernel_a(%x) {fp8.kernel_number = 0 : i32} : (memref<8xf32>) -> ()
    }
    call @kernel_b(%x) {fp8.kernel_number = 3 : i32} : (memref<8xf32>) -> ()
    scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
      func.call @kernel_b(%x) {fp8.kernel_number = 3 : i32} : (memref<8xf32>) -> ()
    }
    return
  }
  func.func private @kernel_a(%x: memref<8xf32> {llvm.noalias}) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %x[%c0] : memref<8xf32>
    return
  }
  func.func private @kernel_b(%x: memref<8xf32>) {
    return
  }
  func.func private @gemm(%x: memref<4xf32, strided<[1]>>) {
    return
  }
}
