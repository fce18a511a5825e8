// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stage 2, in the order in which a program meets them.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_RECIPEPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_RECIPEPASSES_TD

include "mlir/Pass/PassBase.td"

def SelectSites : Pass<"fp8-select-sites", "::mlir::ModuleOp"> {
  let summary = "decide which matmuls become FP8, and say why the others do not";
  let description = [{
    Before: every contraction is an `fp8.matmul` with site and role.
    After: those that stay in high precision have a reason in `kept`; all others
    are to become FP8 and have the `recipe` of their role. A recipe that the target which the module names (`fp8.target`)
    has no kernels for is an error at the first matmul that would become FP8.

    `sites=linear` takes the matmuls of a weight, with `attention` also those of two
    activations, as the two of attention, and their gradients. A matmul without a weight stays otherwise, and
    so does one that only selects rows, by an operand that is 0 or 1 everywhere (a comparison that is
    converted to a float: one-hot embeddings, dispatch masks), with its gradients.

    `fprop`, `dgrad` and `wgrad` keep the matmuls of a role as the program has
    them, by the name of their type: no type is changed. A matmul that the program
    has in a wider type (f32 where bf16 is asked for) stays in that, and its reason
    says so; one that it has in another type is an error. `none` keeps it in any type.

    A regex in `sites`, `require` or `site-recipes` that no site matches is an error, as are `first` and `last`
    of a program without layers. With `allow-unused` the module lists them instead, for programs that are
    parts of a model: `fp8.unused_options = [{message = "no site matches --sites=head", option = "sites"} ]`.
    A `keep` that no site matches is a warning, and always listed.

    `site-recipes` gives sites recipes of their own: the first pair whose regex matches a
    site holds for it, before `fprop`, `dgrad`, `wgrad` and `recipe`. A word instead of a
    recipe is `none` or a type, as in `fprop`. Such a recipe that the target has no
    kernels for, or that does not fit the matmul, is no error: the site stays in high
    precision for that reason.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(fp8-select-sites{keep=head})'
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.matmul site("head") role(fprop) kinds(input, weight)
        ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.matmul site("head") role(fprop) kinds(input, weight) kept("matches --keep=head")
        ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
  }];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"#fp8.delayed_scaling\"",
           "the recipe to be applied, as an attribute; empty: every matmul stays as it is">,
    Option<"sites", "sites", "std::string", "\"linear\"",
           "linear (matmuls of a weight), all, or a regex searched in site names">,
    Option<"attention", "attention", "bool", "false",
           "with sites=linear: matmuls of two activations and their gradients, too">,
    Option<"keep", "keep", "std::string", "\"\"", "regex of sites that stay as they are">,
    Option<"first", "first", "int64_t", "0", "sites of the first N layers stay as they are">,
    Option<"last", "last", "int64_t", "0", "sites of the last N layers stay as they are">,
    Option<"fprop", "fprop", "std::string", "\"\"", "type in which forward matmuls stay; empty: FP8">,
    Option<"dgrad", "dgrad", "std::string", "\"\"", "type in which input gradients stay; empty: FP8">,
    Option<"wgrad", "wgrad", "std::string", "\"\"", "type in which weight gradients stay; empty: FP8">,
    Option<"siteRecipes", "site-recipes", "std::string", "\"\"",
           "an array attribute of pairs [regex, recipe or word], as in "
           "[[\"head\", #fp8.current_scaling], [\"h0/\", \"none\"]]">,
    Option<"require", "require", "std::string", "\"\"",
           "all, or a regex of sites: one of them that does not become FP8 is an error">,
    Option<"allowUnsupported", "allow-unsupported", "bool", "false",
           "choose sites for a recipe that the target has no kernels for, to look at the IR">,
    Option<"allowUnused", "allow-unused", "bool", "false",
           "options that no matmul fits are listed on the module, and are no errors">
  ];
}

def HoistCasts : Pass<"fp8-hoist-casts", "::mlir::func::FuncOp"> {
  let summary = "move casts, transposes and reshapes of loop-invariant tensors out of loops";
  let description = [{
    Before: any function.
    After: casts, transposes and reshapes of tensors from outside a loop are outside the
    loop, so that a weight that several microbatches read is quantized once. A tensor that
    a loop or branch only passes on unchanged counts as outside. Broadcasts and all other
    operations stay where they are.

    Example:
    ```mlir
    // fp8-opt --fp8-hoist-casts
    func.func @f(%w: tensor<8xf32>, %x: tensor<8xbf16>, %n: index) -> tensor<8xbf16> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<8xbf16>) {
        %b = arith.truncf %w : tensor<8xf32> to tensor<8xbf16>
        %z = arith.mulf %y, %b : tensor<8xbf16>
        scf.yield %z : tensor<8xbf16>
      }
      return %r : tensor<8xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%w: tensor<8xf32>, %x: tensor<8xbf16>, %n: index) -> tensor<8xbf16> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %b = arith.truncf %w : tensor<8xf32> to tensor<8xbf16>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<8xbf16>) {
        %z = arith.mulf %y, %b : tensor<8xbf16>
        scf.yield %z : tensor<8xbf16>
      }
      return %r : tensor<8xbf16>
    }
    ```
  }];
}

def RaiseDequantization : Pass<"fp8-raise-dequantization"> {
  let summary = "turn the program's own dequantization of FP8 tensors into fp8.dequantize";
  let description = [{
    Before: `fp8-select-sites` has decided every site. The program may pass FP8 tensors to
    matmuls: directly, or extended and multiplied (or divided) by one scale per tensor,
    written in one op or several.
    After: each such operand of a matmul without `kept` is the result of an
    `fp8.dequantize`; transposes and broadcasts are in the maps of the matmul.
    Roundings that the program wrote between the FP8 data and the matmul are gone: the
    matmul multiplies the FP8 data and applies the scale to the sum. Operands of matmuls
    with `kept` stay unchanged.

    Example:
    ```mlir
    // fp8-opt --fp8-raise-dequantization
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xf8E4M3FN>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %scale = arith.constant 0.125 : f32
      %e = tensor.empty() : tensor<8x16xbf16>
      %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%w : tensor<8x16xf8E4M3FN>) outs(%e : tensor<8x16xbf16>) {
      ^bb0(%in: f8E4M3FN, %out: bf16):
        %a = arith.extf %in : f8E4M3FN to f32
        %m = arith.mulf %a, %scale : f32
        %t = arith.truncf %m : f32 to bf16
        linalg.yield %t : bf16
      } -> tensor<8x16xbf16>
      %y = fp8.matmul ins(%x, %d : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xf32>
      return %y : tensor<4x16xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xf8E4M3FN>, %i: tensor<4x16xf32>) -> tensor<4x16xf32> {
      ...
      %s = tensor.from_elements %cst_1 : tensor<f32>
      %e = tensor.empty() : tensor<8x16xbf16>
      %d = fp8.dequantize ins(%w : tensor<8x16xf8E4M3FN>) scale_inv(%s : tensor<f32>) outs(%e : tensor<8x16xbf16>) -> tensor<8x16xbf16>
      %y = fp8.matmul ins(%x, %d : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xf32>) {indexing_maps = [#map, #map1, #map2]} -> tensor<4x16xf32>
      ...
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CollapseMatmuls : Pass<"fp8-collapse-matmuls"> {
  let summary = "give matmuls with a scale per block one K dimension";
  let description = [{
    Before: `fp8-select-sites` has put the recipe on every matmul that becomes FP8.
    After: where the recipe has a scale per row or block, the matmul has one K dimension,
    so that a block of 128 is 128 neighbours along K, whatever dimensions K had. Where blocks
    span several rows or columns of an operand (`[128, 128]`), the matmul has one dimension for
    these as well. Operands are collapsed, and transposed first where the dimensions are not
    neighbours; results are expanded. Other matmuls stay unchanged.

    Example:
    ```mlir
    // fp8-opt --fp8-collapse-matmuls
    func.func @wgrad(%x: tensor<4x64x16xbf16>, %dy: tensor<4x64x32xbf16>, %i: tensor<16x32xf32>) -> tensor<16x32xf32> {
      %dw = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) recipe(#fp8.block_scaling)
        ins(%x, %dy : tensor<4x64x16xbf16>, tensor<4x64x32xbf16>) outs(%i : tensor<16x32xf32>)
        {indexing_maps = [affine_map<(m, n, b, t) -> (b, t, m)>, affine_map<(m, n, b, t) -> (b, t, n)>,
                          affine_map<(m, n, b, t) -> (m, n)>]} -> tensor<16x32xf32>
      return %dw : tensor<16x32xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d2, d0)>
    #map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
    ...
      %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x64x16xbf16> into tensor<256x16xbf16>
      %1 = tensor.collapse_shape %dy [[0, 1], [2]] : tensor<4x64x32xbf16> into tensor<256x32xbf16>
      %2 = fp8.matmul site("fc") role(wgrad) kinds(input, grad_output) recipe(#fp8.block_scaling) ins(%0, %1 : tensor<256x16xbf16>, tensor<256x32xbf16>) outs(%i : tensor<16x32xf32>) {indexing_maps = [#map, #map1, #map2]} -> tensor<16x32xf32>
    ...
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ApplyRecipe : Pass<"fp8-apply-recipe", "::mlir::ModuleOp"> {
  let summary = "turn the chosen matmuls into FP8 matmuls of quantized tensors";
  let description = [{
    Before: `fp8-select-sites` has decided every site and its recipe.
    After: every `fp8.matmul` without `kept` is an `fp8.scaled_matmul` on the
    results of `fp8.quantize`. A tensor is quantized once per format, however many
    sites read it, and before any reshapes that the sites read it through. If an
    operand is the result of an `fp8.dequantize`, the matmul reads the FP8 data and the
    scale of that operation instead; a product of two such operands has no recipe.

    A stateful recipe gives every quantized tensor a column of the state. The state
    becomes two arguments at the end of each function, `scale: tensor<Nxf32>` and
    `amax_history: tensor<HxNxf32>`, and two results that are aliased to them, the results
    of `fp8.update_amax_history`. The functions of a module share the columns.
    An amax that is recorded inside `scf.for`, `scf.while`, `scf.if`, `scf.index_switch` or
    `scf.forall` becomes an additional result of that operation, the maximum over the
    iterations; a branch that is not taken returns 0, which leaves the column unchanged.
    A function without gradients is evaluation: it reads the state but does not return
    it, unless `calibrate` is set.

    With `stochastic-rounding` the casts of gradients round stochastically. A function that has
    some gets one more argument, the state tensor `rounding: tensor<2xi64>` of seed and step, and a
    result with the next step. The stream of a gradient is its column or, with a recipe
    without state, its number among the function's gradients, after all columns.

    Roles and sites whose recipes differ in format or accumulation only share one update,
    and the columns of tensors with the same format. Other recipes with a history have
    columns and updates of their own in the same state; all must agree in
    `amax_history_len` and `executed_mask`.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(fp8-apply-recipe{recipe=#fp8.current_scaling})'
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.matmul site("fc") role(fprop) kinds(input, weight)
        ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %e0 = tensor.empty() : tensor<f32>
      %wa = fp8.amax ins(%w : tensor<8x16xbf16>) outs(%e0 : tensor<f32>) -> tensor<f32>
      %e1 = tensor.empty() : tensor<f32>
      %ws = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) input_type(bf16)
        ins(%wa : tensor<f32>) outs(%e1 : tensor<f32>) -> tensor<f32>
      %e2 = tensor.empty() : tensor<8x16xf8E4M3FN>
      %e3 = tensor.empty() : tensor<f32>
      %wq, %wi = fp8.quantize ins(%w : tensor<8x16xbf16>) scale(%ws : tensor<f32>)
        outs(%e2, %e3 : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
      %e4 = tensor.empty() : tensor<f32>
      %xa = fp8.amax ins(%x : tensor<4x8xbf16>) outs(%e4 : tensor<f32>) -> tensor<f32>
      %e5 = tensor.empty() : tensor<f32>
      %xs = fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) input_type(bf16)
        ins(%xa : tensor<f32>) outs(%e5 : tensor<f32>) -> tensor<f32>
      %e6 = tensor.empty() : tensor<4x8xf8E4M3FN>
      %e7 = tensor.empty() : tensor<f32>
      %xq, %xi = fp8.quantize ins(%x : tensor<4x8xbf16>) scale(%xs : tensor<f32>)
        outs(%e6, %e7 : tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf8E4M3FN>, tensor<f32>
      %y = fp8.scaled_matmul site("fc") role(fprop) recipe(#fp8.current_scaling) fast
        ins(%xq, %wq : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
        scales(%xi, %wi : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
  }];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"#fp8.delayed_scaling\"",
           "the recipe of matmuls that have none, as an attribute">,
    Option<"calibrate", "calibrate", "bool", "false", "functions without gradients update the state too">,
    Option<"stochasticRounding", "stochastic-rounding", "bool", "false",
           "casts of gradients round stochastically; an error if there is none">,
    Option<"measureErrors", "measure-errors", "bool", "false",
           "each cast outside of loops adds a result: its root mean square error, relative">,
    Option<"markWeights", "mark-weights", "bool", "false",
           "each cast of a weight gets the attribute fp8.weight, for fp8-keep-parameters">,
    Option<"allowUnused", "allow-unused", "bool", "false",
           "stochastic rounding without a gradient in FP8 is listed on the module, and is no error">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def FormGroupedMatmuls : Pass<"fp8-form-grouped-matmuls"> {
  let summary = "turn matmuls of fp8.group_rows into grouped matmuls";
  let description = [{
    Before: `fp8.matmul` and `fp8.scaled_matmul` multiply groups of rows as `fp8.group_rows`
    [G, T, K]. The recipe has cast the rows [T, K] themselves.
    After: each such matmul is one `fp8.grouped_matmul` or `fp8.scaled_grouped_matmul`, which reads the
    rows in place. A matmul that is added to its destination adds after the grouped matmul. No
    `fp8.group_rows` is left: those that no such matmul reads become a `linalg.generic`.

    Example:
    ```mlir
    // fp8-opt --fp8-form-grouped-matmuls
    func.func @f(%x: tensor<8x6xf8E4M3FN>, %w: tensor<3x6x5xf8E4M3FN>, %ends: tensor<3xi32>, %s: tensor<f32>, %i: tensor<8x5xf32>) -> tensor<8x5xf32> {
      %g = fp8.group_rows ins(%x, %ends : tensor<8x6xf8E4M3FN>, tensor<3xi32>) -> tensor<3x8x6xf8E4M3FN>
      %y = fp8.scaled_matmul fast ins(%g, %w : tensor<3x8x6xf8E4M3FN>, tensor<3x6x5xf8E4M3FN>) scales(%s, %s : tensor<f32>, tensor<f32>)
        outs(%i : tensor<8x5xf32>)
        {indexing_maps = [affine_map<(m, n, k, g) -> (g, m, k)>, affine_map<(m, n, k, g) -> (g, k, n)>,
                          affine_map<(m, n, k, g) -> (m, n)>]} -> tensor<8x5xf32>
      return %y : tensor<8x5xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
    #map1 = affine_map<(d0, d1, d2, d3) -> (d3, d2, d1)>
    #map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
    ...
      %y = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<8x6xf8E4M3FN>, tensor<3x6x5xf8E4M3FN>, tensor<3xi32>) scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<8x5xf32>) {indexing_maps = [#map, #map1, #map2]} -> tensor<8x5xf32>
    ...
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PrepareRecipeFunctions : Pass<"fp8-prepare-recipe-functions", "::mlir::ModuleOp"> {
  let summary = "make the functions that recipes name private and give them static shapes";
  let description = [{
    Before: `fp8.update_amax_history` and `fp8.compute_scale` may have a `#fp8.custom` recipe
    that names functions; calls inside these functions are inlined.
    After: the functions are private, so they are not entry points of the compiled library.
    A function of a column takes a tensor with as many elements as the history has rows, so
    that it computes on static shapes.

    Errors: a function with side effects.

    Example:
    ```mlir
    // fp8-opt --fp8-prepare-recipe-functions
    func.func @first(%column: tensor<?xf32>) -> f32 {
      %zero = arith.constant 0 : index
      %current = tensor.extract %column[%zero] : tensor<?xf32>
      return %current : f32
    }
    func.func @f(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
      %s1, %h1 = fp8.update_amax_history
        recipe(#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 4>, amax = @first>)
        columns [0] formats [f8E4M3FN] ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>)
        -> tensor<1xf32>, tensor<4x1xf32>
      return %s1, %h1 : tensor<1xf32>, tensor<4x1xf32>
    }
    ```
    becomes
    ```mlir
    func.func private @first(%rows: tensor<4xf32>) -> f32 {
      %column = tensor.cast %rows : tensor<4xf32> to tensor<?xf32>
      %zero = arith.constant 0 : index
      %current = tensor.extract %column[%zero] : tensor<?xf32>
      return %current : f32
    }
    func.func @f(%a: tensor<1xf32>, %s: tensor<1xf32>, %h: tensor<4x1xf32>) -> (tensor<1xf32>, tensor<4x1xf32>) {
      %s1, %h1 = fp8.update_amax_history
        recipe(#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 4>, amax = @first>)
        columns [0] formats [f8E4M3FN] ins(%a : tensor<1xf32>) outs(%s, %h : tensor<1xf32>, tensor<4x1xf32>)
        -> tensor<1xf32>, tensor<4x1xf32>
      return %s1, %h1 : tensor<1xf32>, tensor<4x1xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def StackCasts : Pass<"fp8-stack-casts", "::mlir::ModuleOp"> {
  let summary = "fill stacks that backward casts slice by slice with FP8 bytes";
  let description = [{
    Before: a joined forward and backward after `fp8-apply-recipe`, or any function that is
    both. Loops of forward fill stacks (a slice in every iteration of `scf.for` or
    `scf.while`, also of nested loops), and loops of backward read slices of them; in a
    pair, backward may also read slices of a tensor that forward computes as a whole.
    Without a pair, forward of a stack is the code before the loop that reads it.
    After: if only casts read a stack, all with the same scale of the state, and forward
    records every amax that they record, the stack holds the bytes, and backward records
    nothing; forward's own cast fills the stack if there is one. Slices that backward narrows from f32 before
    it casts them are narrowed by forward instead. Slices of the bytes are the bytes of the
    slices, so that only the size of the kept tensors changes. Where scales are computed from
    the tensors themselves (current scaling, or `init = current` while a history is empty),
    each slice has its own, and a second stack holds the scale_inv of each slice, an f32.
    Such stacks have slices of known size and are read in whole slices. They stay unchanged
    if the slices are so small that bytes and scales would need as much memory.

    Example:
    ```mlir
    // fp8-opt --fp8-stack-casts
    func.func @forward(%x: tensor<2x8xbf16>, %s: tensor<3xf32>, %h: tensor<4x3xf32>)
        -> (tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<3xf32>, tensor<4x3xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant dense<0.0> : tensor<2x8xbf16>
      %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %zero) -> (tensor<2x8xbf16>) {
        %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
        %w = arith.negf %v : tensor<1x8xbf16>
        %new = tensor.insert_slice %w into %old[%i, 0] [1, 8] [1, 1] : tensor<1x8xbf16> into tensor<2x8xbf16>
        scf.yield %new : tensor<2x8xbf16>
      }
      %scale = tensor.extract_slice %s[2] [1] [1] : tensor<3xf32> to tensor<f32>
      %s1, %h1 = fp8.end_forward @backward given(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
      %slice = tensor.extract_slice %stack[1, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
      %e = tensor.empty() : tensor<1x8xf8E4M3FN>
      %f = tensor.empty() : tensor<f32>
      %q, %inverse = fp8.quantize column(2) ins(%slice : tensor<1x8xbf16>) scale(%scale : tensor<f32>)
          outs(%e, %f : tensor<1x8xf8E4M3FN>, tensor<f32>) -> tensor<1x8xf8E4M3FN>, tensor<f32>
      return %q, %inverse, %s1, %h1 : tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<3xf32>, tensor<4x3xf32>
    }
    func.func @backward() -> (tensor<1x8xf8E4M3FN>, tensor<f32>) {
      %p = ub.poison : tensor<1x8xf8E4M3FN>
      %i = ub.poison : tensor<f32>
      return %p, %i : tensor<1x8xf8E4M3FN>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @forward(%x: tensor<2x8xbf16>, %s: tensor<3xf32>, %h: tensor<4x3xf32>)
        -> (tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<3xf32>, tensor<4x3xf32>) {
      %scale = tensor.extract_slice %s[2] [1] [1] : tensor<3xf32> to tensor<f32>
      %one = arith.constant dense<1.0> : tensor<f32>
      %inverse = arith.divf %one, %scale : tensor<f32>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant dense<0.0> : tensor<2x8xbf16>
      %z = arith.constant 0.0 : f8E4M3FN
      %bytes = tensor.empty() : tensor<2x8xf8E4M3FN>
      %zeros = linalg.fill ins(%z : f8E4M3FN) outs(%bytes : tensor<2x8xf8E4M3FN>) -> tensor<2x8xf8E4M3FN>
      %stack = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %zeros) -> (tensor<2x8xf8E4M3FN>) {
        %v = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xbf16> to tensor<1x8xbf16>
        %w = arith.negf %v : tensor<1x8xbf16>
        %g = tensor.empty() : tensor<1x8xf8E4M3FN>
        %h1 = tensor.empty() : tensor<f32>
        %q, %qi = fp8.quantize column(2) ins(%w : tensor<1x8xbf16>) scale(%scale : tensor<f32>)
            outs(%g, %h1 : tensor<1x8xf8E4M3FN>, tensor<f32>) -> tensor<1x8xf8E4M3FN>, tensor<f32>
        %new = tensor.insert_slice %q into %old[%i, 0] [1, 8] [1, 1] : tensor<1x8xf8E4M3FN> into tensor<2x8xf8E4M3FN>
        scf.yield %new : tensor<2x8xf8E4M3FN>
      }
      %s1, %h2 = fp8.end_forward @backward given(%s, %h : tensor<3xf32>, tensor<4x3xf32>) -> tensor<3xf32>, tensor<4x3xf32>
      %slice = tensor.extract_slice %stack[1, 0] [1, 8] [1, 1] : tensor<2x8xf8E4M3FN> to tensor<1x8xf8E4M3FN>
      %e = tensor.empty() : tensor<1x8xf8E4M3FN>
      %f = tensor.empty() : tensor<f32>
      return %slice, %inverse, %s1, %h2 : tensor<1x8xf8E4M3FN>, tensor<f32>, tensor<3xf32>, tensor<4x3xf32>
    }
    func.func @backward() -> (tensor<1x8xf8E4M3FN>, tensor<f32>) {
      %p = ub.poison : tensor<1x8xf8E4M3FN>
      %i = ub.poison : tensor<f32>
      return %p, %i : tensor<1x8xf8E4M3FN>, tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def KeepParameters : Pass<"fp8-keep-parameters", "::mlir::ModuleOp"> {
  let summary = "make the FP8 bytes of weights part of the state";
  let description = [{
    Before: `fp8-apply-recipe{mark-weights}`; `fp8.weight = "site"` marks the casts of weights.
    After: a function has arguments at the end of its list with the results of these casts (`data`,
    `scale_inv`, and `amax` where it is recorded, as far as they are read) in place of the casts. Where the function returns a new value
    of the weight (`tf.aliasing_output`), it casts that value, with the scale that the next step would use, and
    returns the results for the next step: the bits are those that the next step would compute. The casts of
    functions that compute the same of arguments of the same names share tensors of the state.

    A new function `NAME_fp8_parameters` for each function computes the tensors from the weights that it is
    given: for the first step, and whenever a caller gives other weights. Until then they are NaN.

    A cast of one slice after the other of a stack of weights, in a loop over layers, becomes a cast of the stack
    before the loop, of which the loop reads slices.

    Not kept are other casts inside of loops and branches (with current scaling, each slice has a scale of its
    own), casts of what is computed by matmuls or from other state,
    and, where scales are part of the state, casts of weights whose new value is not computed where the scale
    changes: an optimizer outside of the program gives the new weight only after the new scale. If no cast of a weight is kept, that is an error. `fp8.parameter_casts` on the module lists all.

    Example:
    ```mlir
    // fp8-opt --fp8-keep-parameters
    func.func @main(%w: tensor<8x16xbf16> {tf.aliasing_output = 0 : i32}, %s: tensor<f32>)
        -> (tensor<8x16xbf16>, tensor<8x16xf8E4M3FN>, tensor<f32>) {
      %scale = arith.constant dense<2.0> : tensor<f32>
      %e0 = tensor.empty() : tensor<8x16xf8E4M3FN>
      %e1 = tensor.empty() : tensor<f32>
      %q, %i = fp8.quantize ins(%w : tensor<8x16xbf16>) scale(%scale : tensor<f32>)
        outs(%e0, %e1 : tensor<8x16xf8E4M3FN>, tensor<f32>) {fp8.weight = "fc"}
        -> tensor<8x16xf8E4M3FN>, tensor<f32>
      %new = arith.negf %w : tensor<8x16xbf16>
      return %new, %q, %i : tensor<8x16xbf16>, tensor<8x16xf8E4M3FN>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.parameter_casts =
        [{bytes = 132 : i64, copy_bytes = 0 : i64, entry = "main", kept = true, reason = "", site = "fc"} ]} {
      func.func @main(%w: tensor<8x16xbf16> {tf.aliasing_output = 0 : i32}, %s: tensor<f32>,
          %q: tensor<8x16xf8E4M3FN> {fp8.derived, fp8.initial = dense<0x7F> : tensor<8x16xf8E4M3FN>,
                                     fp8.program_state = "weight/fc/data", tf.aliasing_output = 3 : i32},
          %i: tensor<f32> {fp8.derived, fp8.initial = dense<0x7FC00000> : tensor<f32>,
                           fp8.program_state = "weight/fc/scale_inv", tf.aliasing_output = 4 : i32})
          -> (tensor<8x16xbf16>, tensor<8x16xf8E4M3FN>, tensor<f32>,
              tensor<8x16xf8E4M3FN> {fp8.program_state = "weight/fc/data"},
              tensor<f32> {fp8.program_state = "weight/fc/scale_inv"}) attributes {
            fp8.parameters = {arguments = array<i64: 0>,
              casts = [{arguments = array<i64: 0>, tensors = ["weight/fc/data", "weight/fc/scale_inv"]} ],
              entry = "main_fp8_parameters"}} {
        %new = arith.negf %w : tensor<8x16xbf16>
        %scale = arith.constant dense<2.0> : tensor<f32>
        %e0 = tensor.empty() : tensor<8x16xf8E4M3FN>
        %e1 = tensor.empty() : tensor<f32>
        %q1, %i1 = fp8.quantize ins(%new : tensor<8x16xbf16>) scale(%scale : tensor<f32>)
          outs(%e0, %e1 : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
        return %new, %q, %i, %q1, %i1
            : tensor<8x16xbf16>, tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<8x16xf8E4M3FN>, tensor<f32>
      }
      func.func @main_fp8_parameters(%w: tensor<8x16xbf16>,
          %q: tensor<8x16xf8E4M3FN> {fp8.derived, fp8.initial = dense<0x7F> : tensor<8x16xf8E4M3FN>,
                                     fp8.program_state = "weight/fc/data", tf.aliasing_output = 0 : i32},
          %i: tensor<f32> {fp8.derived, fp8.initial = dense<0x7FC00000> : tensor<f32>,
                           fp8.program_state = "weight/fc/scale_inv", tf.aliasing_output = 1 : i32})
          -> (tensor<8x16xf8E4M3FN> {fp8.program_state = "weight/fc/data"},
              tensor<f32> {fp8.program_state = "weight/fc/scale_inv"}) {
        %scale = arith.constant dense<2.0> : tensor<f32>
        %e0 = tensor.empty() : tensor<8x16xf8E4M3FN>
        %e1 = tensor.empty() : tensor<f32>
        %q1, %i1 = fp8.quantize ins(%w : tensor<8x16xbf16>) scale(%scale : tensor<f32>)
          outs(%e0, %e1 : tensor<8x16xf8E4M3FN>, tensor<f32>) -> tensor<8x16xf8E4M3FN>, tensor<f32>
        return %q1, %i1 : tensor<8x16xf8E4M3FN>, tensor<f32>
      }
    }
    ```
  }];
  let options = [
    Option<"allowUnused", "allow-unused", "bool", "false",
           "that no matmul of a weight becomes FP8 is listed on the module, and is no error">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_RECIPEPASSES_TD
