// RUN: fp8-opt %s --split-input-file --fp8-emit-profile | FileCheck %s -enable-var-scope

// One record after each kernel, and one more where other code than views and constants ran before it.
// CHECK-LABEL: func @fp8_call_main
// CHECK: %[[PROFILE:.*]] = call @fp8_abi_profile(%arg0)
// CHECK: call @fp8_entry_main(%[[PROFILE]], %{{.*}})
// CHECK-LABEL: func private @fp8_entry_main
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr, %[[X:.*]]: memref<8xf32>)
// CHECK: %[[OUTSIDE:.*]] = arith.constant -1
// CHECK: call @fp8_abi_record(%[[P]], %[[OUTSIDE]])
// CHECK: call @kernel_a(%[[X]]) : (memref<8xf32>) -> ()
// CHECK: %[[A:.*]] = arith.constant 0 : i32
// CHECK: call @fp8_abi_record(%[[P]], %[[A]])
// CHECK: memref.subview
// CHECK-NOT: fp8_abi_record
// CHECK: call @kernel_b
// CHECK: %[[B:.*]] = arith.constant 1 : i32
// CHECK: call @fp8_abi_record(%[[P]], %[[B]])
// CHECK: memref.store
// CHECK: %[[STORED:.*]] = arith.constant -1
// CHECK: call @fp8_abi_record(%[[P]], %[[STORED]])
// CHECK: call @kernel_a
// CHECK: call @fp8_abi_record
// CHECK: scf.for
// CHECK: %[[LOOP:.*]] = arith.constant -1
// CHECK: func.call @fp8_abi_record(%[[P]], %[[LOOP]])
// CHECK: func.call @kernel_a
// CHECK: func.call @fp8_abi_record
// CHECK-NEXT: }
// CHECK: scf.parallel
// CHECK-NOT: fp8_abi_record
// CHECK: return
// CHECK: llvm.mlir.global internal constant @fp8_kernels_text("{\22kernels\22:[{\22kind\22:\22elementwise\22,\22name\22:\22a\22,\22operations\22:8,\22read\22:32,\22sites\22:[0,1],\22written\22:32},{\22kind\22:\22copies\22,\22name\22:\22b\22,\22operations\22:null,\22read\22:null,\22sites\22:[1],\22written\22:null}],\22sites\22:[\22h0/a\22,\22h1/a\22]}\00")
// CHECK: llvm.func @fp8_kernels() -> !llvm.ptr
module attributes {fp8.kernels = [
    {kind = "elementwise", name = "a", operations = 8 : i64, read = 32 : i64, sites = ["h0/a", "h1/a"], written = 32 : i64},
    {kind = "copies", name = "b", sites = ["h1/a"]}]} {
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
    call @kernel_b(%part) {fp8.kernel_number = 1 : i32} : (memref<4xf32, strided<[1]>>) -> ()
    memref.store %zero, %x[%c0] : memref<8xf32>
    call @kernel_a(%x) {fp8.kernel_number = 0 : i32} : (memref<8xf32>) -> ()
    scf.for %i = %c0 to %c4 step %c1 {
      func.call @kernel_a(%x) {fp8.kernel_number = 0 : i32} : (memref<8xf32>) -> ()
    }
    scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
      func.call @kernel_a(%x) {fp8.kernel_number = 0 : i32} : (memref<8xf32>) -> ()
    }
    return
  }
  func.func private @kernel_a(memref<8xf32>)
  func.func private @kernel_b(memref<4xf32, strided<[1]>>)
}
