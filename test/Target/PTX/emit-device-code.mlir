// RUN: fp8-opt %s --fp8-emit-device-code | FileCheck %s -enable-var-scope

// CHECK: llvm.mlir.global internal constant @fp8_device_chip("sm_90a\00")
// CHECK: llvm.mlir.global internal constant @fp8_device_ptx("text\00")
// The image: the chip, PTX 8.0, the text with its NUL, no machine code.
// CHECK: llvm.mlir.global internal constant @fp8_device_image()
// CHECK: llvm.mlir.addressof @fp8_device_chip
// CHECK-NEXT: llvm.mlir.constant(80 : i32)
// CHECK-NEXT: llvm.mlir.constant(0 : i32)
// CHECK-NEXT: llvm.mlir.addressof @fp8_device_ptx
// CHECK-NEXT: llvm.mlir.constant(5 : i64)
// CHECK-NEXT: llvm.mlir.zero
// CHECK-NEXT: llvm.mlir.constant(0 : i64)
// The kernels: name, threads, dynamic shared memory, cluster.
// CHECK: @fp8_kernel_name_0("a\00")
// CHECK: @fp8_kernel_name_1("b\00")
// CHECK: llvm.mlir.global internal constant @fp8_device_kernels()
// CHECK: llvm.mlir.addressof @fp8_kernel_name_0
// CHECK-NEXT: llvm.mlir.constant(384 : i32)
// CHECK-NEXT: llvm.mlir.constant(196608 : i32)
// CHECK-NEXT: llvm.mlir.constant(2 : i32)
// CHECK: llvm.mlir.addressof @fp8_kernel_name_1
// CHECK-NEXT: llvm.mlir.constant(32 : i32)
// CHECK-NEXT: llvm.mlir.constant(0 : i32)
// CHECK-NEXT: llvm.mlir.constant(1 : i32)
// CHECK: @fp8_symbol_name_0("table\00")
// Version 2, one image, two kernels, one symbol.
// CHECK: llvm.mlir.global internal constant @fp8_device_code_value()
// CHECK-NEXT: llvm.mlir.constant(2 : i32)
// CHECK-NEXT: llvm.mlir.constant(1 : i32)
// CHECK-NEXT: llvm.mlir.addressof @fp8_device_image
// CHECK-NEXT: llvm.mlir.constant(2 : i32)
// CHECK-NEXT: llvm.mlir.constant(1 : i32)
// CHECK-NEXT: llvm.mlir.addressof @fp8_device_kernels
// CHECK-NEXT: llvm.mlir.addressof @fp8_device_symbols
// CHECK: llvm.func @fp8_device_code() -> !llvm.ptr
// CHECK-NOT: gpu.module
module attributes {gpu.container_module, fp8.target = #fp8.chip<"sm_90a">} {
  gpu.module @kernels attributes {fp8.ptx = "text", fp8.symbols = ["table"]} {
    llvm.func @a() attributes {gpu.kernel, fp8.threads = 384 : i32, fp8.shared_bytes = 196608 : i32, fp8.cluster = 2 : i32} {
      llvm.return
    }
    llvm.func @b() attributes {gpu.kernel, fp8.threads = 32 : i32} {
      llvm.return
    }
  }
}
