// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TargetBackendInterface: how the kernels and the code of a target are made. The attribute of
// the target has it, as an external model where the attribute is declared elsewhere.

#ifndef FP8_TARGET_TARGETBACKEND_TD
#define FP8_TARGET_TARGETBACKEND_TD

include "mlir/IR/OpBase.td"

def FP8_TargetBackendInterface : AttrInterface<"TargetBackendInterface"> {
  let cppNamespace = "::fp8";
  let description = [{
    Stages 6 and 7 of a target, and what comes out of them. An attribute that is a
    target (`TargetAttrInterface`) implements this interface itself, or gets it when its
    dialect is loaded:

    ```c++
    registry.addExtension(+[](mlir::MLIRContext *context, MyDialect *) {
      MyTargetAttr::attachInterface<MyBackend>(*context);
    });
    ```
  }];
  let methods = [
    InterfaceMethod<[{
      Adds stage 6: from bufferized IR to kernels, without operations of the fp8
      dialect. Ends in what `fp8-verify-stage{stage=kernels}` checks. What computes a
      product of the program has the mark `fp8.products` (ProductMarks.h), which stage 7
      keeps: the report says of a product without one that it has no code.
    }], "void", "buildKernelsPipeline", (ins "::mlir::OpPassManager &":$manager)>,
    InterfaceMethod<[{
      Adds stage 7: from kernels to the LLVM dialect, with one `fp8_call_<entry>` per entry.
    }], "void", "buildCodePipeline", (ins "::mlir::OpPassManager &":$manager)>,
    InterfaceMethod<[{
      The words of `--emit=` for which `emit` makes code, "lib" among them.
    }], "::llvm::SmallVector<::llvm::StringRef>", "getOutputs", (ins)>,
    InterfaceMethod<[{
      Writes the result of stage 7 as `output`, one of `getOutputs()`. A library returns
      `manifest` from `fp8_manifest`. Errors are diagnostics at the module.
    }], "::llvm::LogicalResult", "emit",
      (ins "::mlir::ModuleOp":$module, "::llvm::StringRef":$output, "::llvm::StringRef":$manifest,
           "const ::fp8::HostCodeOptions &":$options, "::llvm::raw_pwrite_stream &":$stream)>
  ];
}

#endif // FP8_TARGET_TARGETBACKEND_TD
