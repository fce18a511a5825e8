// RUN: fp8-opt %s --fp8-attach-chip=chip=sm_90a | FileCheck %s
// RUN: fp8-opt %s --fp8-attach-chip=chip=sm_90a --fp8-attach-chip=chip=sm_89 | FileCheck %s
// RUN: not fp8-opt %s --fp8-attach-chip=chip=sm_80 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: module attributes {fp8.target = #fp8.chip<"sm_90a">}
// UNKNOWN: error: chip "sm_80" is none of sm_89, sm_90a, sm_100a, sm_120a
module {
}
