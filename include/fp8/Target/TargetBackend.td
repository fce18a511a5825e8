// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TargetBackendInterface: generates the kernels and the code of a target. The attribute of the
// target implements it, or has an external model of it if it is declared in another library.

#ifndef FP8_TARGET_TARGETBACKEND_TD
#define FP8_TARGET_TARGETBACKEND_TD

include "mlir/IR/OpBase.td"

def FP8_TargetBackendInterface : AttrInterface<"TargetBackendInterface"> {
  let cppNamespace = "::fp8";
  let description = [{
    Stages 6 and 7 of a target, and the files that it can emit. An attribute that is a
    target (`TargetAttrInterface`) implements this interface itself, or gets an external
    model of it when its dialect is loaded:

    ```c++
    registry.addExtension(+[](mlir::MLIRContext *context, MyDialect *) {
      MyTargetAttr::attachInterface<MyBackend>(*context);
    });
    ```
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the attribute of the target for the machine in `options`: the stages before
      code generation see its properties. The same attribute by default.
    }], "::mlir::Attribute", "getTargetFor", (ins "const ::fp8::HostCodeOptions &":$options), "",
      [{ return $_attr; }]>,
    InterfaceMethod<[{
      Adds the passes of stage 6, which lower bufferized IR to kernels. Their result must
      pass `fp8-verify-stage{stage=kernels}`: no operation of the fp8 dialect is left. The
      code that computes a matmul of the program must have the attribute `fp8.matmuls`
      (MatmulMarks.h), and stage 7 must keep it: the report says of a matmul without it
      that no code is left for it.
    }], "void", "buildKernelsPipeline", (ins "::mlir::OpPassManager &":$manager)>,
    InterfaceMethod<[{
      Adds the passes of stage 7, which lower kernels to the LLVM dialect, with one
      `fp8_call_<entry>` per entry point. `options` are those that `emit` gets later.
    }], "void", "buildCodePipeline",
      (ins "::mlir::OpPassManager &":$manager, "const ::fp8::HostCodeOptions &":$options)>,
    InterfaceMethod<[{
      Returns the values of `--emit=` that `emit` supports; "lib" is one of them.
    }], "::llvm::SmallVector<::llvm::StringRef>", "getOutputs", (ins)>,
    InterfaceMethod<[{
      Writes `module`, the result of stage 7, to `stream` as `output`, one of `getOutputs()`.
      The function `fp8_manifest` of a library returns `manifest`. Errors are diagnostics at
      the module.
    }], "::llvm::LogicalResult", "emit",
      (ins "::mlir::ModuleOp":$module, "::llvm::StringRef":$output, "::llvm::StringRef":$manifest,
           "const ::fp8::HostCodeOptions &":$options, "::llvm::raw_pwrite_stream &":$stream)>
  ];
}

#endif // FP8_TARGET_TARGETBACKEND_TD
