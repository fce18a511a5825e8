# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installs PyTorch of torch.txt in the environment of the Python that runs this, without CUDA's libraries (5 GB).

PyPI has PyTorch for CUDA alone, and its libraries are loaded with it. One small library stands for them all: it has the
functions that PyTorch links, and each returns "no CUDA-capable device". PyTorch then says that there is no GPU.
"""

import pathlib
import re
import subprocess
import sys
import sysconfig

LLVM = pathlib.Path("/usr/lib/llvm-22/bin")
OURS = re.compile(r"lib(cu|nv|nccl)|NVSHMEM")
FUNCTION = re.compile(r"(cu|nv|nccl|__cu)")
NO_DEVICE = 100  # cudaErrorNoDevice
#: These return a text.
DESCRIPTION = re.compile(r"(cuda|cudnn|cusparse|nccl|nvrtc)GetError(String|Name)$|ncclGetLastError$")


def main() -> None:
    requirement = re.search(r"^torch==.*$", pathlib.Path(__file__).with_name("torch.txt").read_text(), re.M)[0]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", requirement], check=True)
    packages = pathlib.Path(sysconfig.get_path("purelib"))
    write_stub(packages / "torch" / "lib")
    for metadata in packages.glob("torch-*.dist-info/METADATA"):
        # Requirements that pip would install later, for another package that needs PyTorch.
        metadata.write_text(re.sub(r"^Requires-Dist: (cuda|nvidia|triton).*\n", "", metadata.read_text(), flags=re.M))


def write_stub(folder: pathlib.Path) -> None:
    """Writes libcuda_stub.so beside PyTorch's libraries, with a link for each library of CUDA that they need."""
    libraries = [str(path) for path in folder.glob("*.so*")]
    names = sorted({name for name in re.findall(r"NEEDED.*\[(.*)\]", run("llvm-readelf", "-d", *libraries)) if OURS.match(name)})
    defined = {name.partition("@")[0] for name in symbols("--defined-only", libraries)}
    versions: dict[str, set[str]] = {}
    for symbol in symbols("--undefined-only", libraries):
        name, _, version = symbol.partition("@")
        if OURS.match(version) if version else FUNCTION.match(name) and name not in defined:
            versions.setdefault(version or "UNVERSIONED", set()).add(name)
    script = "".join(f'{version} {{ global: {"; ".join(sorted(found))}; }};\n' for version, found in versions.items())
    functions = sorted(name for found in versions.values() for name in found)
    labels = {name: f".globl {name}\n.type {name},@function\n{name}:\n" for name in functions}
    texts = "".join(label for name, label in labels.items() if DESCRIPTION.match(name))
    codes = "".join(label for name, label in labels.items() if not DESCRIPTION.match(name))
    (folder / "stub.map").write_text(script)
    (folder / "stub.s").write_text(
        f'.text\n{texts}lea description(%rip), %rax\nret\n{codes}mov ${NO_DEVICE}, %eax\nret\ndescription: .asciz "no CUDA-capable device"\n'
    )
    stub = folder / "libcuda_stub.so"
    run("clang", "-shared", "-nostdlib", "-fuse-ld=lld", f"-Wl,--version-script={folder}/stub.map", "-o", stub, folder / "stub.s")
    for name in names:
        (folder / name).symlink_to(stub.name)


def symbols(which: str, libraries: list[str]) -> list[str]:
    return re.findall(r"^.* (\S+)$", run("llvm-nm", "-D", which, *libraries), re.M)


def run(tool: str, *arguments: object) -> str:
    return subprocess.run([LLVM / tool, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
