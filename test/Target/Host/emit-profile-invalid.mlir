// RUN: fp8-opt %s --fp8-emit-profile -verify-diagnostics

// The kernels of a GPU in the stage of the CPU.
module attributes {gpu.container_module, fp8.kernels = [{kind = "loops", name = "k", read = 0 : i64, sites = [], written = 0 : i64}]} {
  gpu.module @kernels {
    func.func @k() attributes {gpu.kernel, fp8.threads = 32 : i32} {
      return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    // expected-error @below {{'gpu.launch_func' is of stage 6 for a GPU; stage 7 for it is fp8-gpu-code-pipeline}}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args() {fp8.kernel_number = 0 : i32}
    return
  }
}
