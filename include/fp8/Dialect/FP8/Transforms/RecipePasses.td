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
    scale of that operation instead; a matmul of two such operands has no recipe.

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

#endif // FP8_DIALECT_FP8_TRANSFORMS_RECIPEPASSES_TD
