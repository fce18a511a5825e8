// RUN: fp8-opt --fp8-split-pair --split-input-file -verify-diagnostics %s

// A function that fp8-join-pair leaves is split; other functions with its marker are the user's mistakes.

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@+1 {{'fp8.end_forward' op must name another function, whose body fp8-join-pair took: 'b' is none; ask for the pair with --pair}}
  %dy = fp8.end_forward @b given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %x, %dy : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@+1 {{must name another function, whose body fp8-join-pair took: 'b' is none}}
  %dy = fp8.end_forward @b given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %x, %dy : tensor<4xf32>, tensor<4xf32>
}
func.func @b(%dy: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.negf %dy : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@+1 {{must return the arguments of 'b' that are no residuals, and the state}}
  fp8.end_forward @b given(%x : tensor<4xf32>)
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}
func.func @b(%dy: tensor<4xf32>) -> tensor<4xf32> {
  %p = ub.poison : tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{must be given the results of forward, and the state}}
  %dy = fp8.end_forward @b given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}
func.func @b(%dy: tensor<4xf32>) -> tensor<4xf32> {
  %p = ub.poison : tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{must be in a function that returns its own results, then those of 'b', and the state if it is updated}}
  %dy = fp8.end_forward @b given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}
func.func @b(%dy: tensor<4xf32>) -> tensor<8xf32> {
  %p = ub.poison : tensor<8xf32>
  return %p : tensor<8xf32>
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<1xf32> {fp8.state = "scale"}) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@+1 {{must return the arguments of 'b' that are no residuals, and the state}}
  %dy = fp8.end_forward @b given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %x, %dy : tensor<4xf32>, tensor<4xf32>
}
func.func @b(%dy: tensor<4xf32>) -> tensor<4xf32> {
  %p = ub.poison : tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

func.func @f(%s: tensor<1xf32> {fp8.state = "scale"}, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@+1 {{must be in a function whose last arguments are its state}}
  %dy = fp8.end_forward @b given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %x, %dy : tensor<4xf32>, tensor<4xf32>
}
func.func @b(%dy: tensor<4xf32>) -> tensor<4xf32> {
  %p = ub.poison : tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %dy = fp8.end_forward @b given(%x : tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{must stand once in a function, outside of other operations}}
  %dz = fp8.end_forward @b given(%x : tensor<4xf32>) -> tensor<4xf32>
  return %x, %dz : tensor<4xf32>, tensor<4xf32>
}
func.func @b(%dy: tensor<4xf32>) -> tensor<4xf32> {
  %p = ub.poison : tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

func.func @f() {
  fp8.end_forward @b
  return
}
func.func @g() {
  // expected-error@+1 {{is the second that names 'b'}}
  fp8.end_forward @b
  return
}
func.func @b() {
  return
}

// -----

func.func @f(%c: i1) {
  scf.if %c {
    // expected-error@+1 {{must stand once in a function, outside of other operations}}
    fp8.end_forward @b
  }
  return
}
func.func @b() {
  return
}
