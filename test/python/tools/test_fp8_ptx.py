# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the command fp8-ptx on hand-written kernels: values, errors with their lines, coverage."""
import json
import subprocess

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
# y[i] = a x[i] + y[i] for i < n
SAXPY = HEAD + """
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>;
  ld.param.f32 %f0, [a]; ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0;
  @%p ret;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  ld.global.f32 %f2, [%rd4];
  fma.rn.f32 %f3, %f0, %f1, %f2;
  st.global.f32 [%rd4], %f3;
  ret;
}
"""
LINE = {text: number for number, text in enumerate(SAXPY.split("\n"), 1)}
SAXPY_RUN = ["--grid=3", "--block=100", "--arg=f32:2.5", "--arg=x", "--arg=inout:y"]


def kernel_of(parameters, body):
    return HEAD + ".visible .entry k(%s) {\n.reg .b32 %%r<8>; .reg .b64 %%rd<8>; .reg .b16 %%h;\n%s\nret;\n}\n" % (parameters, body)


@pytest.fixture
def box(tmp_path, bin_dir):
    """A folder with k.ptx and in, and fp8-ptx in it."""

    class Box:
        def write(self, text=SAXPY, name="k.ptx", **tensors):
            (tmp_path / name).write_text(text)
            if tensors:
                save_file(tensors, tmp_path / "in")

        def call(self, *args):
            return subprocess.run([bin_dir / "fp8-ptx", *args], cwd=tmp_path, capture_output=True, text=True)

        def run(self, *args):
            return self.call("run", "k.ptx", *(["--inputs=in"] if (tmp_path / "in").exists() else []), *args)

        def ok(self, *args):
            done = self.run("--outputs=out", *args)
            assert done.returncode == 0, done.stderr
            return load_file(tmp_path / "out")

        def fails(self, message, *args, code=1):
            done = self.run("--outputs=out", *args)
            assert done.returncode == code and message in done.stderr and done.stdout == "", done.stderr
            assert not (tmp_path / "out").exists()
            return done.stderr

        def read(self, name):
            return (tmp_path / name).read_text()

        def header(self, name):
            data = (tmp_path / name).read_bytes()
            return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])

    return Box()


def test_values_come_back(box):
    x, y = np.arange(300, dtype=np.float32), np.linspace(-1, 1, 300, dtype=np.float32)
    box.write(x=x, y=y)
    out = box.ok("--kernel=saxpy", *SAXPY_RUN, "--arg=u32:300")
    assert list(out) == ["y"] and np.array_equal(out["y"], np.float32(2.5) * x + y)


def test_every_seed_and_no_checks_give_the_same(box):
    x, y = np.arange(300, dtype=np.float32), np.ones(300, np.float32)
    box.write(x=x, y=y)
    for extra in (["--seed=7"], ["--seed=8"], ["--no-checks"], ["--chip=sm_90a"]):
        assert np.array_equal(box.ok(*SAXPY_RUN, "--arg=u32:300", *extra)["y"], np.float32(2.5) * x + y)


def test_threads_beyond_the_end_change_nothing(box):
    box.write(x=np.ones(300, np.float32), y=np.ones(300, np.float32))
    assert np.array_equal(box.ok(*SAXPY_RUN, "--arg=u32:7")["y"], [3.5] * 7 + [1] * 293)


def test_out_tensors_are_zeroed_and_have_their_type_and_shape(box):
    box.write(kernel_of(".param .u64 a, .param .u64 b", "ld.param.u64 %rd0, [a];\nmov.u32 %r0, %tid.x;\n"
                        "mul.wide.u32 %rd1, %r0, 2;\nadd.u64 %rd0, %rd0, %rd1;\nmov.b16 %h, 0x3f80;\nst.global.b16 [%rd0], %h;"))
    out = box.ok("--block=3", "--arg=out:a:bf16[2,4]", "--arg=out:deep/name:i8[5]")
    assert out["a"].dtype == ml_dtypes.bfloat16 and out["a"].tolist() == [[1, 1, 1, 0], [0, 0, 0, 0]]
    assert out["deep/name"].dtype == np.int8 and out["deep/name"].tolist() == [0] * 5
    assert box.run("--outputs=out", "--arg=out:a:bf16[2,4]", "--arg=out:b:e4m3[5]").returncode == 0
    assert box.header("out")["b"]["dtype"] == "F8_E4M3"


@pytest.mark.parametrize("text, bits, size", [
    ("i32:-5", 0xFFFFFFFB, 4), ("u64:0xfedcba9876543210", 0xFEDCBA9876543210, 8), ("i8:-1", 0xFF, 1), ("bool:true", 1, 1),
    ("f32:0.1", 0x3DCCCCCD, 4), ("f32:-inf", 0xFF800000, 4), ("f64:1e-310", 0x12688B70E62B, 8), ("f16:65504", 0x7BFF, 2),
    ("bf16:1.00390625", 0x3F80, 2), ("e4m3:448", 0x7E, 1), ("e5m2:-2", 0xC0, 1), ("u16:65535", 0xFFFF, 2),
])
def test_scalars_have_their_bits(box, text, bits, size):
    box.write(kernel_of(".param .b%d s, .param .u64 out" % (8 * size),
                        "ld.param.u64 %%rd0, [out];\nld.param.u%d %%rd1, [s];\nst.global.u64 [%%rd0], %%rd1;" % (8 * size)))
    assert int(box.ok("--arg=" + text, "--arg=out:o:u64[1]")["o"][0]) == bits


def test_a_structure_is_passed_by_value(box):
    box.write(kernel_of(".param .align 4 .b8 s[12], .param .u64 out", "ld.param.u64 %rd0, [out];\nld.param.u32 %r0, [s+8];\n"
                        "st.global.u32 [%rd0], %r0;"), s=np.array([7, 8, 9], np.int32))
    assert box.ok("--arg=value:s", "--arg=out:o:i32[]")["o"] == 9


def test_clusters_and_shared_memory(box):
    box.write(kernel_of(".param .u64 out", ".reg .b32 %c;\nld.param.u64 %rd0, [out];\nmov.u32 %c, %dynamic_smem_size;\n"
                        "st.global.u32 [%rd0], %c;\nmov.u32 %c, %cluster_nctaid.x;\nst.global.u32 [%rd0+4], %c;"))
    assert box.ok("--grid=4", "--cluster=2", "--shared=160000", "--arg=out:o:u32[2]")["o"].tolist() == [160000, 2]


def test_a_mistake_is_reported_at_its_line(box):
    box.write(x=np.ones(256, np.float32), y=np.ones(300, np.float32))
    said = box.fails("error: out-of-bounds access: 4 bytes at ", *SAXPY_RUN, "--arg=u32:300")
    assert said.startswith("k.ptx:%d: error:" % LINE["  ld.global.f32 %f1, [%rd3];"])
    assert "0 bytes behind the 1024 bytes of argument x" in said and "by ld.global.f32 in saxpy" in said
    assert "block (2,0,0), thread (56,0,0)" in said and "(--seed=0)" in said and said.count("\n") == 1


def test_a_deadlock_tells_where_every_warp_is(box):
    box.write(kernel_of("", ".reg .pred %p;\nmov.u32 %r0, %tid.x;\nsetp.lt.u32 %p, %r0, 32;\n@%p bar.sync 1, 64;"))
    done = box.run("--block=64")
    assert done.returncode == 1 and done.stderr.startswith("k.ptx:9: error: deadlock: ")
    assert "barrier 1: 32 of 64 threads" in done.stderr and "warp 0 lanes ffffffff at line 9" in done.stderr


@pytest.mark.parametrize("args, message", [
    (["--kernel=other"], "k.ptx: error: no kernel other: it has saxpy"),
    ([], "k.ptx:5:17: error: saxpy has 4 parameters, --arg is given 0 times"),
    (["--arg=f64:1", "--arg=x", "--arg=y", "--arg=i32:1"], "parameter 1 of saxpy has 4 bytes, --arg=f64:1 has 8"),
    (["--arg=f32:1", "--arg=x", "--arg=z", "--arg=i32:1"], "--arg=z: in has no tensor 'z'"),
    (["--arg=f32:one"], "--arg=f32:one: 'one' is not a number of type f32"),
    (["--arg=u8:256"], "'256' is not a number of type u8"),
    (["--arg=out:y:f33[2]"], "'f33' is none of the types bool, i8"),
    (["--arg=out:y"], "expected out:NAME:TYPE[SIZE,SIZE,...]"),
    (["--arg=out:y:f32[a]"], "'a' is not a size"),
    (["--profile=json:no/p.json"], "fp8-ptx: error: no/p.json: cannot write: "),
    (["--chip=sm_89"], "the module is for sm_90a, which sm_89 does not run"),
    (["--chip=sm_1"], "--chip=sm_1 is none of sm_90a, sm_89, sm_100a, sm_120a"),
    (["--block=2048", "--arg=f32:1", "--arg=x", "--arg=inout:y", "--arg=i32:1"], "the block is (2048,1,1): at most 1024 threads"),
    (["--shared=300000", "--arg=f32:1", "--arg=x", "--arg=inout:y", "--arg=i32:1"], "300000 bytes of shared memory, a block of sm_90a has at most 232448"),
    (["--grid=3", "--cluster=2", "--arg=f32:1", "--arg=x", "--arg=inout:y", "--arg=i32:1"], "does not divide into clusters"),
])
def test_wrong_requests_are_one_line(box, args, message):
    box.write(x=np.ones(4, np.float32), y=np.ones(4, np.float32))
    done = box.run(*args)
    assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_malformed_files_are_one_line(box):
    box.write(SAXPY.replace("fma.rn.f32 %f3,", "fma.rn.f32 %f99,"))
    line = [text.split("%f3")[0] for text in LINE].index("  fma.rn.f32 ") + 1
    assert box.fails("k.ptx:%d:" % line, *SAXPY_RUN).count("\n") == 1
    box.write(SAXPY.replace("fma.rn.f32 %f3,", "fma.wrong.f32 %f3,"))
    assert "fma.wrong.f32" in box.fails("k.ptx:%d:" % line, *SAXPY_RUN)
    done = box.call("run", "absent.ptx")
    assert done.returncode == 1 and done.stderr == "absent.ptx: error: No such file or directory\n"


@pytest.mark.parametrize("args", [[], ["run"], ["run", "k.ptx", "--grid=0"], ["run", "k.ptx", "--block=1,2,3,4"],
                                  ["run", "k.ptx", "--shared=x"], ["run", "k.ptx", "--outputs=p", "--profile=json:p"],
                                  ["coverage"], ["run", "k.ptx", "--unknown"]])
def test_a_wrong_command_line_is_2(box, args):
    box.write()
    done = box.call(*args)
    assert done.returncode == 2 and done.stderr and not done.stdout


def test_help_teaches(box):
    for args in (["--help"], ["run", "--help"], ["coverage", "--help"]):
        done = box.call(*args)
        assert done.returncode == 0 and "EXAMPLES" in done.stdout and "--arg=out:NAME:f32[4,8]" in done.stdout
    assert "--kernel=<NAME>" in box.call("run", "--help").stdout and "--missing" in box.call("coverage", "--help").stdout


def test_coverage_counts_instructions(box):
    box.write()
    done = box.call("coverage", "k.ptx")
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.strip().split("\n")
    assert first == "k.ptx: sm_90a, PTX 8.7, 18 instructions of 12 kinds, nothing is missing"
    table = {row.split()[2]: tuple(map(int, row.split()[:2])) for row in rows[1:]}
    assert table["ld.global.f32"] == (2, LINE["  ld.global.f32 %f1, [%rd3];"]) and table["mov.u32"][0] == 3
    assert table["ret"][0] == 2 and table["add.u64"][0] == 2 and sum(count for count, _ in table.values()) == 18


def test_coverage_names_what_is_missing(box):
    box.write()
    box.write(SAXPY.replace("add.u64 %rd3, %rd0, %rd2;", "frobnicate.u64 %rd3, %rd0;"), "m.ptx")
    done = box.call("coverage", "--missing", "k.ptx", "m.ptx")
    assert done.returncode == 1
    lines = done.stdout.strip().split("\n")
    assert lines[0].endswith("nothing is missing") and lines[1].endswith("missing are 1 of 1 kinds")
    assert lines[3].split() == ["1", "13", "frobnicate.u64", "MISSING:", "unknown", "instruction", "frobnicate"]
    assert len(lines) == 4


def test_coverage_goes_on_after_a_bad_file(box):
    box.write()
    box.write("no PTX", "bad.ptx")
    done = box.call("coverage", "bad.ptx", "k.ptx")
    assert done.returncode == 1 and done.stderr.startswith("bad.ptx:1:") and "nothing is missing" in done.stdout


def test_profile_counts_by_line(box):
    box.write(x=np.ones(300, np.float32), y=np.ones(300, np.float32))
    done = box.run(*SAXPY_RUN, "--arg=u32:300", "--profile=json:p.json")
    assert done.returncode == 0 and done.stdout == "", done.stderr
    (kernel,) = json.loads(box.read("p.json"))["kernels"]
    assert kernel["kernel"] == "saxpy" and kernel["launches"] == 1
    line = LINE["  ld.global.f32 %f1, [%rd3];"]
    # The blocks begin at bytes 0, 400 and 800: in the second, each warp begins in the middle of a sector.
    (load,) = [one for one in kernel["instructions"] if one["line"] == line]
    assert load == {"line": line, "instruction": "ld.global.f32", "warp_instructions": 12, "thread_instructions": 300,
                    "global_read_bytes": 1200, "global_sectors": 13 + 16 + 13}
    assert kernel["total"]["global_written_bytes"] == 1200 and kernel["total"]["bank_conflicts"] == 0


def test_profile_as_a_table(box):
    box.write(x=np.ones(300, np.float32), y=np.ones(300, np.float32))
    rows = box.run(*SAXPY_RUN, "--arg=u32:300", "--profile").stdout.strip().split("\n")
    assert rows[0] == "saxpy, launches: 1"
    assert rows[1].split() == ["line", "warps", "threads", "global", "B", "sectors", "instruction"]
    assert [row.split() for row in rows if "st.global" in row] == [["17", "12", "300", "1", "200", "42", "st.global.f32"]]
    assert rows[-1].split()[-1] == "total"


@pytest.mark.parametrize("sums, near, far", [("hardware", 16, 0), ("exact", 16, 16), ("korder", 0, 0)])
def test_sums_of_tensor_cores_are_selectable(box, sums, near, far):
    """16 products of 1 beside 2^24, where one alone is half an ulp, and beside 2^26."""
    for addend, more in ((24, near), (26, far)):
        box.write(kernel_of(".param .u64 out", ".reg .f32 %%f<4>; .reg .b32 %%one;\nld.param.u64 %%rd0, [out];\n"
                            "mov.b32 %%one, 0x3f803f80;\nmov.b32 %%f0, 0x%x; mov.f32 %%f1, %%f0; mov.f32 %%f2, %%f0; mov.f32 %%f3, %%f0;\n"
                            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%%f0, %%f1, %%f2, %%f3}, {%%one, %%one, %%one, %%one}, "
                            "{%%one, %%one}, {%%f0, %%f1, %%f2, %%f3};\nst.global.f32 [%%rd0], %%f0;" % ((127 + addend) << 23)))
        assert box.ok("--block=32", "--arg=out:o:f32[1]", "--sums=" + sums)["o"][0] == 2 ** addend + more


def test_the_model_of_sums_is_one_of_three(box):
    box.write()
    assert box.run("--sums=other").returncode == 2
