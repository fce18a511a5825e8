// RUN: fp8-opt --fp8-join-pair --split-input-file -verify-diagnostics %s
// RUN: not fp8-opt --pass-pipeline='builtin.module(fp8-join-pair{pair=f})' %s --split-input-file 2>&1 | FileCheck %s

// CHECK: error: --pair=f must be FORWARD:BACKWARD or FORWARD:BACKWARD:K

// expected-error@+1 {{'b' has residuals (fp8.residual), but no function names its pair (fp8.backward)}}
func.func @b(%x: tensor<4xf32> {fp8.residual}) {
  return
}

// -----

// expected-error@+1 {{its backward 'b' (fp8.backward) must be another function with a body}}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @b} {
  return %x : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @b} {
  return %x : tensor<4xf32>
}
// expected-error@+1 {{'b' takes 0 residuals, but 'f' gives 1}}
func.func @b(%x: tensor<4xf32>) {
  return
}

// -----

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @b} {
  return %x : tensor<4xf32>
}
// expected-error@+1 {{argument 0 of 'b' is 'tensor<4xbf16>', but result 0 of 'f', which it receives, is 'tensor<4xf32>'; give another K in --pair}}
func.func @b(%x: tensor<4xbf16> {fp8.residual}) {
  return
}

// -----

func.func @f(
    // expected-error@+1 {{argument 0 of 'f' carries result 0, a residual of the pair; do not donate or carry it}}
    %x: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32> {fp8.residual})
    attributes {fp8.backward = @b} {
  return %x : tensor<4xf32>
}
func.func @b(%x: tensor<4xf32> {fp8.residual}) {
  return
}

// -----

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @b} {
  return %x : tensor<4xf32>
}
// expected-error@+1 {{'b' has FP8 state: a pair is joined before fp8-apply-recipe}}
func.func @b(%x: tensor<4xf32> {fp8.residual}, %s: tensor<1xf32> {fp8.state = "scale"}) {
  return
}

// -----

// expected-error@+1 {{'f' branches between blocks: use structured control flow (scf)}}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @b} {
  cf.br ^bb1
^bb1:
  return %x : tensor<4xf32>
}
func.func @b(%x: tensor<4xf32> {fp8.residual}) {
  return
}

// -----

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @b} {
  return %x : tensor<4xf32>
}
// expected-error@+1 {{is part of two pairs (fp8.backward)}}
func.func @b(%x: tensor<4xf32> {fp8.residual}) -> (tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @c} {
  return %x : tensor<4xf32>
}
func.func @c(%x: tensor<4xf32> {fp8.residual}) {
  return
}

// -----

// expected-error@+1 {{'f' is joined with a backward already: split that pair first}}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {fp8.residual}) attributes {fp8.backward = @b} {
  fp8.end_forward @c
  return %x : tensor<4xf32>
}
func.func @b(%x: tensor<4xf32> {fp8.residual}) {
  return
}
func.func @c() {
  return
}
