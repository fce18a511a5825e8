// RUN: fp8-opt %s --split-input-file --fp8-divide-concatenations | FileCheck %s

// Scores and a sink: the softmax is computed on both, and the sums go on from one to the other.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func.func @sink
// CHECK-SAME: %[[SCORES:.*]]: tensor<4x6xf32>, %[[SINK:.*]]: tensor<4x1xf32>
func.func @sink(%scores: tensor<4x6xf32>, %sink: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %wide = tensor.empty() : tensor<4x7xf32>
  // CHECK: %[[LOWEST:.*]] = linalg.fill
  // CHECK: %[[MAX:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[SCORES]] : tensor<4x6xf32>) outs(%[[LOWEST]]
  // CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[SINK]] {{\[}}[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
  // CHECK: %[[ALL:.*]] = linalg.generic {{.*}}["parallel"]} ins(%[[FLAT]], %[[MAX]] : tensor<4xf32>, tensor<4xf32>)
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32)
  // CHECK-NEXT: arith.maximumf %[[B]], %[[A]]
  %all = tensor.concat dim(1) %scores, %sink : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x7xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%all : tensor<4x7xf32>) outs(%below : tensor<4xf32>) {
  ^bb0(%x: f32, %m: f32):
    %y = arith.maximumf %m, %x : f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  // CHECK-DAG: %[[E1:.*]] = linalg.generic {{.*}}ins(%[[SCORES]], %[[ALL]] : tensor<4x6xf32>, tensor<4xf32>)
  // CHECK-DAG: %[[E2:.*]] = linalg.generic {{.*}}ins(%[[SINK]], %[[ALL]] : tensor<4x1xf32>, tensor<4xf32>)
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%all, %max : tensor<4x7xf32>, tensor<4xf32>) outs(%wide : tensor<4x7xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %d = arith.subf %x, %m : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> tensor<4x7xf32>
  %none = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[E1]]
  // CHECK: %[[FLAT2:.*]] = tensor.collapse_shape %[[E2]]
  // CHECK: linalg.generic {{.*}}["parallel"]} ins(%[[FLAT2]], %[[SUM]]
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<4x7xf32>) outs(%none : tensor<4xf32>) {
  ^bb0(%x: f32, %s: f32):
    %y = arith.addf %s, %x : f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  // CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[E1]]
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<4x7xf32>, tensor<4xf32>) outs(%wide : tensor<4x7xf32>) {
  ^bb0(%x: f32, %s: f32, %out: f32):
    %y = arith.divf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<4x7xf32>
  // CHECK-NOT: tensor.concat
  // CHECK: return %[[P]] : tensor<4x6xf32>
  %seen = tensor.extract_slice %p[0, 0] [4, 6] [1, 1] : tensor<4x7xf32> to tensor<4x6xf32>
  return %seen : tensor<4x6xf32>
}

// -----

// As JAX has it: an index chooses. The parts have any sizes, and a slice may be some of one.
// CHECK-LABEL: func.func @chosen
// CHECK-SAME: %[[A:.*]]: tensor<3xf32>, %[[B:.*]]: tensor<2xf32>, %[[C:.*]]: tensor<1xf32>, %[[START:.*]]: tensor<f32>
func.func @chosen(%a: tensor<3xf32>, %b: tensor<2xf32>, %c: tensor<1xf32>, %start: tensor<f32>) -> (tensor<f32>, tensor<2xf32>) {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %empty = tensor.empty() : tensor<6xf32>
  %all = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%empty : tensor<6xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %isFirst = arith.cmpi ult, %i, %c3 : index
    %x = scf.if %isFirst -> (f32) {
      %own = tensor.extract %a[%i] : tensor<3xf32>
      scf.yield %own : f32
    } else {
      %isSecond = arith.cmpi ult, %i, %c5 : index
      %other = scf.if %isSecond -> (f32) {
        %at = arith.subi %i, %c3 : index
        %own = tensor.extract %b[%at] : tensor<2xf32>
        scf.yield %own : f32
      } else {
        %at = arith.subi %i, %c5 : index
        %own = tensor.extract %c[%at] : tensor<1xf32>
        scf.yield %own : f32
      }
      scf.yield %other : f32
    }
    linalg.yield %x : f32
  } -> tensor<6xf32>
  // CHECK-NOT: scf.if
  // CHECK: %[[S1:.*]] = linalg.reduce {{.*}}ins(%[[A]] : tensor<3xf32>) outs(%[[START]] : tensor<f32>)
  // CHECK: %[[S2:.*]] = linalg.reduce {{.*}}ins(%[[B]] : tensor<2xf32>) outs(%[[S1]] : tensor<f32>)
  // CHECK: %[[ONE:.*]] = tensor.collapse_shape %[[C]] [] : tensor<1xf32> into tensor<f32>
  // CHECK: %[[S3:.*]] = linalg.generic {{.*}}ins(%[[ONE]], %[[S2]] : tensor<f32>, tensor<f32>)
  %sum = linalg.reduce { arith.addf } ins(%all : tensor<6xf32>) outs(%start : tensor<f32>) dimensions = [0]
  // CHECK: %[[PART:.*]] = tensor.extract_slice %[[A]][1] [2] [1]
  %part = tensor.extract_slice %all[1] [2] [1] : tensor<6xf32> to tensor<2xf32>
  // CHECK: return %[[S3]], %[[PART]]
  return %sum, %part : tensor<f32>, tensor<2xf32>
}

// -----

// Gradients of a slice are padded: the padding is a part of its own. A number for all elements is divided, too.
// CHECK-LABEL: func.func @padded
// CHECK-SAME: %[[G:.*]]: tensor<4x6xf32>, %[[P:.*]]: tensor<4x7xf32>
func.func @padded(%g: tensor<4x6xf32>, %p: tensor<4x7xf32>, %start: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-DAG: %[[P1:.*]] = tensor.extract_slice %[[P]][0, 0] [4, 6] [1, 1]
  // CHECK-DAG: %[[P2:.*]] = tensor.extract_slice %[[P]][0, 6] [4, 1] [1, 1]
  // CHECK-DAG: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<4x1xf32>
  // CHECK-DAG: linalg.generic {{.*}}ins(%[[G]], %[[P1]] : tensor<4x6xf32>, tensor<4x6xf32>)
  // CHECK-DAG: linalg.generic {{.*}}ins(%[[ZEROS]], %[[P2]] : tensor<4x1xf32>, tensor<4x1xf32>)
  // CHECK-NOT: tensor.pad
  %whole = tensor.pad %g low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    %zero = arith.constant 0.0 : f32
    tensor.yield %zero : f32
  } : tensor<4x6xf32> to tensor<4x7xf32>
  %empty = tensor.empty() : tensor<4x7xf32>
  %products = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%whole, %p : tensor<4x7xf32>, tensor<4x7xf32>) outs(%empty : tensor<4x7xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %z = arith.mulf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<4x7xf32>
  %sum = linalg.reduce { arith.addf } ins(%products : tensor<4x7xf32>) outs(%start : tensor<4xf32>) dimensions = [1]
  return %sum : tensor<4xf32>
}

// -----

// PyTorch inserts a part into zeros: these are parts of their own, as are those of any other tensor around it.
// CHECK-LABEL: func.func @inserted
// CHECK-SAME: %[[G:.*]]: tensor<4x5xf32>, %[[D:.*]]: tensor<4x8xf32>, %[[START:.*]]: tensor<4xf32>
func.func @inserted(%g: tensor<4x5xf32>, %d: tensor<4x8xf32>, %start: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<4x6xf32>
  // CHECK-DAG: %[[LAST:.*]] = tensor.extract_slice %[[D]][0, 7] [4, 1] [1, 1]
  // CHECK-DAG: %[[BEFORE:.*]] = tensor.extract_slice %[[D]][0, 0] [4, 2] [1, 1]
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4x1xf32>
  // CHECK-NOT: tensor.insert_slice
  // CHECK: %[[A1:.*]] = linalg.reduce { arith.addf } ins(%[[G]] : tensor<4x5xf32>) outs(%[[START]] : tensor<4xf32>)
  // CHECK: %[[Z:.*]] = tensor.collapse_shape %[[ZERO]]
  // CHECK: %[[A2:.*]] = linalg.generic {{.*}} ins(%[[Z]], %[[A1]] : tensor<4xf32>, tensor<4xf32>)
  // CHECK: %[[B1:.*]] = linalg.reduce { arith.addf } ins(%[[BEFORE]] : tensor<4x2xf32>) outs(%[[START]] : tensor<4xf32>)
  // CHECK: %[[B2:.*]] = linalg.reduce { arith.addf } ins(%[[G]] : tensor<4x5xf32>) outs(%[[B1]] : tensor<4xf32>)
  // CHECK: %[[L:.*]] = tensor.collapse_shape %[[LAST]]
  // CHECK: %[[B3:.*]] = linalg.generic {{.*}} ins(%[[L]], %[[B2]] : tensor<4xf32>, tensor<4xf32>)
  // CHECK: return %[[A2]], %[[B3]]
  %first = tensor.insert_slice %g into %zeros[0, 0] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<4x6xf32>
  %a = linalg.reduce { arith.addf } ins(%first : tensor<4x6xf32>) outs(%start : tensor<4xf32>) dimensions = [1]
  %middle = tensor.insert_slice %g into %d[0, 2] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<4x8xf32>
  %b = linalg.reduce { arith.addf } ins(%middle : tensor<4x8xf32>) outs(%start : tensor<4xf32>) dimensions = [1]
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

// Parts along two dimensions, or with gaps, are no concatenation.
// CHECK-LABEL: func.func @inserted_otherwise
// CHECK-COUNT-2: tensor.insert_slice
func.func @inserted_otherwise(%g: tensor<3x5xf32>, %d: tensor<4x9xf32>, %start: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.insert_slice %g into %d[0, 0] [3, 5] [1, 1] : tensor<3x5xf32> into tensor<4x9xf32>
  %a = linalg.reduce { arith.addf } ins(%0 : tensor<4x9xf32>) outs(%start : tensor<4xf32>) dimensions = [1]
  %h = tensor.empty() : tensor<4x5xf32>
  %1 = tensor.insert_slice %h into %d[0, 0] [4, 5] [1, 2] : tensor<4x5xf32> into tensor<4x9xf32>
  %b = linalg.reduce { arith.addf } ins(%1 : tensor<4x9xf32>) outs(%start : tensor<4xf32>) dimensions = [1]
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

// Something needs the whole tensor, a slice has elements of both parts, nothing is reduced along the dimension, or a
// sum has an order in which both parts take turns: all stay.
// CHECK-LABEL: func.func @whole
// CHECK: tensor.concat
func.func @whole(%a: tensor<4x6xf32>, %b: tensor<4x1xf32>, %start: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x7xf32>) {
  %all = tensor.concat dim(1) %a, %b : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x7xf32>
  %sum = linalg.reduce { arith.addf } ins(%all : tensor<4x7xf32>) outs(%start : tensor<4xf32>) dimensions = [1]
  return %sum, %all : tensor<4xf32>, tensor<4x7xf32>
}
// CHECK-LABEL: func.func @across
// CHECK: tensor.concat
func.func @across(%a: tensor<4x6xf32>, %b: tensor<4x2xf32>, %start: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
  %all = tensor.concat dim(1) %a, %b : (tensor<4x6xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>
  %sum = linalg.reduce { arith.addf } ins(%all : tensor<4x8xf32>) outs(%start : tensor<4xf32>) dimensions = [1]
  %both = tensor.extract_slice %all[0, 5] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  return %sum, %both : tensor<4xf32>, tensor<4x2xf32>
}
// CHECK-LABEL: func.func @other
// CHECK: tensor.concat
func.func @other(%a: tensor<4x6xf32>, %b: tensor<4x1xf32>, %start: tensor<7xf32>) -> tensor<7xf32> {
  %all = tensor.concat dim(1) %a, %b : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x7xf32>
  %sum = linalg.reduce { arith.addf } ins(%all : tensor<4x7xf32>) outs(%start : tensor<7xf32>) dimensions = [0]
  return %sum : tensor<7xf32>
}
// CHECK-LABEL: func.func @turns
// CHECK: tensor.concat
func.func @turns(%a: tensor<4x6xf32>, %b: tensor<4x1xf32>, %start: tensor<f32>) -> tensor<f32> {
  %all = tensor.concat dim(1) %a, %b : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x7xf32>
  %sum = linalg.reduce { arith.addf } ins(%all : tensor<4x7xf32>) outs(%start : tensor<f32>) dimensions = [0, 1]
  return %sum : tensor<f32>
}

// -----

// Two concatenations that are divided at different places.
// CHECK-LABEL: func.func @places
// CHECK-COUNT-2: tensor.concat
func.func @places(%a: tensor<4x6xf32>, %b: tensor<4x1xf32>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %x = tensor.concat dim(1) %a, %b : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x7xf32>
  %y = tensor.concat dim(1) %b, %a : (tensor<4x1xf32>, tensor<4x6xf32>) -> tensor<4x7xf32>
  %empty = tensor.empty() : tensor<4x7xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x7xf32>, tensor<4x7xf32>) outs(%empty : tensor<4x7xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %z = arith.addf %p, %q : f32
    linalg.yield %z : f32
  } -> tensor<4x7xf32>
  %sum = linalg.reduce { arith.addf } ins(%sums : tensor<4x7xf32>) outs(%start : tensor<4xf32>) dimensions = [1]
  return %sum : tensor<4xf32>
}

// -----

// The index of the largest element counts on in the next part; a result may keep the dimension, of size 1.
#all = affine_map<(i, j) -> (i, j)>
#kept = affine_map<(i, j) -> (i, 0)>
// CHECK-LABEL: func.func @argmax
// CHECK-SAME: %[[A:.*]]: tensor<4x1xf32>, %[[B:.*]]: tensor<4x6xf32>, %[[LOWEST:.*]]: tensor<4x1xf32>, %[[NONE:.*]]: tensor<4x1xi64>
func.func @argmax(%a: tensor<4x1xf32>, %b: tensor<4x6xf32>, %lowest: tensor<4x1xf32>, %none: tensor<4x1xi64>) -> (tensor<4x1xf32>, tensor<4x1xi64>) {
  %all = tensor.concat dim(1) %a, %b : (tensor<4x1xf32>, tensor<4x6xf32>) -> tensor<4x7xf32>
  // CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[A]]
  // CHECK: %[[FIRST:.*]]:2 = linalg.generic {{.*}}["parallel", "parallel"]} ins(%[[FLAT]], %[[LOWEST]], %[[NONE]] : tensor<4xf32>, tensor<4x1xf32>, tensor<4x1xi64>)
  // CHECK: arith.constant 0 : index
  // CHECK: linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[B]] : tensor<4x6xf32>) outs(%[[FIRST]]#0, %[[FIRST]]#1
  // CHECK: %[[OWN:.*]] = linalg.index 1
  // CHECK: %[[ONE:.*]] = arith.constant 1 : index
  // CHECK: arith.addi %[[OWN]], %[[ONE]]
  %r:2 = linalg.generic {indexing_maps = [#all, #kept, #kept], iterator_types = ["parallel", "reduction"]} ins(%all : tensor<4x7xf32>) outs(%lowest, %none : tensor<4x1xf32>, tensor<4x1xi64>) {
  ^bb0(%x: f32, %m: f32, %at: i64):
    %j = linalg.index 1 : index
    %place = arith.index_cast %j : index to i64
    %y = arith.maximumf %x, %m : f32
    %isMore = arith.cmpf ogt, %x, %m : f32
    %z = arith.select %isMore, %place, %at : i64
    linalg.yield %y, %z : f32, i64
  } -> (tensor<4x1xf32>, tensor<4x1xi64>)
  return %r#0, %r#1 : tensor<4x1xf32>, tensor<4x1xi64>
}
