// RUN: fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels{ptxas=%S/Inputs/ptxas-spills}))' 2>&1 | FileCheck %s
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels{ptxas=%S/Inputs/ptxas-refuses}))' 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels{ptxas=%S/Inputs/none}))' 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels{ptxas=}))' | FileCheck %s --check-prefix=WITHOUT
// RUN: fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels{ptxas=none}))' | FileCheck %s --check-prefix=WITHOUT
// RUN: fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels{ptxas=%S/Inputs/ptxas-old}))' 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels))' | FileCheck %s --check-prefix=WITHOUT
// RUN: sh -c 'PATH=%S/Inputs:$PATH fp8-opt %s --pass-pipeline="builtin.module(gpu.module(fp8-assemble-kernels{ptxas=ptxas-spills}))" 2>/dev/null' | FileCheck %s --check-prefix=NAMED
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(gpu.module(fp8-assemble-kernels{ptxas=ptxas-of-nobody}))' 2>&1 | FileCheck %s --check-prefix=NOBODY

// An assembler that has no threads is asked again without them.
// OLD-NOT: error
// OLD: fp8.cubin = "old code"

// CHECK: :[[#@LINE + 11]]:5: warning: kernel 'a' stores 224 bytes of registers in memory: it needs more than a thread has
// CHECK: :[[#@LINE + 13]]:5: warning: (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized in function 'b'
// CHECK: fp8.cubin = "machine code"
// REFUSED: :[[#@LINE + 7]]:3: error: '{{.*}}ptxas-refuses' failed: ptxas fatal   : Unresolved extern function 'missing'
// MISSING: :[[#@LINE + 6]]:3: error: '{{.*}}none' failed: {{.*}}
// NAMED: fp8.cubin = "machine code"
// NOBODY: error: there is no program 'ptxas-of-nobody' on $PATH; ptxas=none makes no machine code
// WITHOUT: gpu.module @kernels attributes {fp8.ptx = "text"}
// WITHOUT-NOT: fp8.cubin
module attributes {gpu.container_module, fp8.target = #fp8.chip<"sm_90a">} {
  gpu.module @kernels attributes {fp8.ptx = "text"} {
    llvm.func @a() attributes {gpu.kernel, fp8.threads = 384 : i32} {
      llvm.return
    }
    llvm.func @b() attributes {gpu.kernel, fp8.threads = 32 : i32} {
      llvm.return
    }
  }
}
