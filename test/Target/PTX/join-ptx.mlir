// RUN: fp8-opt %s --mlir-disable-threading --fp8-ptx-pipeline | sed 's/\\0A/\n/g; s/\\09/ /g; s/\\22/"/g' > %t.alone
// RUN: fp8-opt %s --fp8-ptx-pipeline | sed 's/\\0A/\n/g; s/\\09/ /g; s/\\22/"/g' > %t.threads
// RUN: cmp %t.alone %t.threads
// RUN: FileCheck %s --input-file=%t.threads

// Kernels are written one by one. Parts that several have are in the text once: directives of the module,
// variables of host code, and files, whose numbers are those of the whole text.
// CHECK-COUNT-1: .version
// CHECK: .visible .global .align 4 .b8 numbers[8] = {0, 0, 128, 63, 0, 0, 0, 64};
// CHECK: .extern .shared .align 16 .b8 dynamic[];
// CHECK-NOT: numbers[8]
// CHECK-NOT: dynamic[]
// CHECK: .visible .entry first(
// CHECK: .loc 1 3 0
// CHECK-NOT: .version
// CHECK: .visible .entry second(
// CHECK: .loc 2 8 5
// CHECK-NOT: .version
// CHECK: .visible .entry third(
// CHECK: .loc 1 9 5
// CHECK: .file 1 "{{.*}}a.py"
// CHECK-NEXT: .file 2 "{{.*}}b.py"
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  gpu.module @kernels {
    llvm.mlir.global external constant @numbers(dense<[1.0, 2.0]> : tensor<2xf32>) {addr_space = 1 : i32} : !llvm.array<2 x f32>
    llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    llvm.func @first(%x: !llvm.ptr) attributes {gpu.kernel, fp8.threads = 32 : i32} {
      %numbers = llvm.mlir.addressof @numbers : !llvm.ptr<1> loc("a.py":4:5)
      %one = llvm.load %numbers : !llvm.ptr<1> -> f32 loc("a.py":4:5)
      %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3> loc("a.py":5:5)
      llvm.store volatile %one, %shared : f32, !llvm.ptr<3> loc("a.py":5:5)
      llvm.store %one, %x : f32, !llvm.ptr loc("a.py":5:5)
      llvm.return loc("a.py":5:5)
    } loc("a.py":3:1)
    llvm.func @second(%x: !llvm.ptr) attributes {gpu.kernel, fp8.threads = 32 : i32} {
      %numbers = llvm.mlir.addressof @numbers : !llvm.ptr<1> loc("b.py":8:5)
      %one = llvm.load %numbers : !llvm.ptr<1> -> f32 loc("b.py":8:5)
      %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3> loc("b.py":8:5)
      llvm.store volatile %one, %shared : f32, !llvm.ptr<3> loc("b.py":8:5)
      llvm.return loc("b.py":8:5)
    } loc("b.py":7:1)
    llvm.func @third(%x: !llvm.ptr) attributes {gpu.kernel, fp8.threads = 32 : i32} {
      llvm.return loc("a.py":9:5)
    } loc("a.py":9:1)
  }
}
