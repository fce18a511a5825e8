# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The house rules that a program can check: licence headers, sizes of files, names of passes,
# flags and tests, what the compiler's libraries must not use, links in the documentation,
# formatting of the code.

import ast
import collections
import graphlib
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = ["include", "lib", "tools", "test", "runtime", "python", "findings"]
FILES = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*")) if p.is_file()]
SOURCES = [p for p in FILES if p.suffix in {".cpp", ".c", ".h"}]
DOCUMENTS = [ROOT / "README.md"] + [p for p in FILES if p.suffix == ".md"]
PASS = re.compile(r'def (\w+) : Pass<"([\w-]+)"')
HEADER = [
    "This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.",
    "See LICENSE for license information.",
    "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception",
]


def name(path):
    return str(path.relative_to(ROOT))


def passes():
    for path in ROOT.glob("include/fp8/**/*Passes.td"):
        for match in PASS.finditer(path.read_text()):
            yield match.groups()


def test_files_start_with_the_licence():
    code = [p for p in FILES if p.suffix in {".cpp", ".c", ".h", ".td", ".py", ".sh", ".cmake"}]
    lacking = []
    for path in code + [ROOT / "tools/check", ROOT / "tools/quickstart", ROOT / ".ci/run"]:
        head = path.read_text().split("\n")[:4]
        lines = head[1:] if head[0].startswith("#!") else head[:3]
        if [line.lstrip("/# ").strip() for line in lines] != HEADER:
            lacking.append(name(path))
    assert not lacking


#: A file of more lines has a seam along which it divides.
MOST_LINES = 400


def test_files_are_short():
    folders = [ROOT / folder for folder in ["lib", "include", "runtime", "tools", "python", "test/python"]]
    kinds = {".cpp", ".c", ".h", ".td", ".def", ".py"}
    code = [p for p in FILES if p.suffix in kinds and any(map(p.is_relative_to, folders))]
    code += (ROOT / "lib").rglob("*.mlir")
    assert not sorted(name(p) for p in code if p.read_text().count("\n") > MOST_LINES), "divide these files"


@pytest.mark.parametrize("class_name, flag", sorted(passes()), ids=lambda value: value)
def test_pass_file_flag_and_test_have_one_name(class_name, flag):
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", class_name.replace("FP8", "Fp8")).lower()
    assert words.replace("fp8", "").replace("--", "-") == flag.replace("fp8", "").replace("--", "-").lstrip("-")
    assert list(ROOT.glob("lib/**/%s.cpp" % class_name)), "no file %s.cpp" % class_name
    stem = flag if flag.startswith("convert-") else flag.replace("fp8-", "", 1)
    assert list(ROOT.glob("test/**/%s*.mlir" % stem)), "no test %s.mlir" % stem


def test_libraries_have_no_global_switches():
    banned = re.compile(r"\bcl::opt\b|\bcl::list\b|\bgetenv\b|(?<![\w:.])exit\(")
    assert not [name(p) for p in SOURCES if p.is_relative_to(ROOT / "lib") and banned.search(p.read_text())]


def test_links_in_documents_lead_somewhere():
    broken = []
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            if not (path.parent / target).exists():
                broken.append("%s -> %s" % (name(path), target))
    assert not broken


def test_lib_readme_knows_every_source_file():
    text = (ROOT / "lib/README.md").read_text()
    files = [p for folder in ["Dialect", "Analysis", "Pipelines", "Report", "Compiler", "CAPI"] for p in (ROOT / "lib" / folder).rglob("*.cpp")]
    assert not sorted(name(p) for p in files if p.stem.replace("Ops", "") not in text)


def test_lib_readme_names_files_that_exist():
    """Names of sources, with braces as in `Folder/{One,Other}.cpp`."""
    text = (ROOT / "lib/README.md").read_text()
    groups = re.findall(r"(\w*)\{([\w,]+)\}(\w*\.\w+)", text)
    names = {f"{head}{middle}{end}" for head, middles, end in groups for middle in middles.split(",")}
    names |= set(re.findall(r"(?<![\w}])\w+\.(?:cpp|h|td|def)\b", text))
    known = {p.name for folder in ("include", "lib", "runtime") for p in (ROOT / folder).rglob("*.*")}
    assert not sorted(names - known)


def test_emulator_readme_knows_every_source_file():
    folder = ROOT / "runtime/emulator"
    documents = [folder / "README.md", folder / "src/num/README.md"]
    words = set(re.findall(r"\w+", " ".join(p.read_text() for p in documents)))
    files = [p for p in folder.rglob("*.cpp") if not p.is_relative_to(folder / "test")]
    assert not sorted(name(p) for p in files if p.stem not in words)


def included_folders(path, source):
    """The folders of `source` whose headers a file includes by a path: one that begins there, or with `..`."""
    for header in re.findall(r'#include "([\w./]+)/', path.read_text()):
        folder = (path.parent / header).resolve() if header.startswith("..") else source / header
        if folder.is_relative_to(source):
            yield folder.relative_to(source).parts[0]


@pytest.mark.parametrize("folder", [ROOT / "runtime", ROOT / "runtime/emulator"], ids=["runtime", "emulator"])
def test_folders_include_what_their_readme_says(folder):
    source = folder / "src"
    rows = re.findall(r"^\| `(\w+)/` \|(.*)\|$", (folder / "README.md").read_text(), re.MULTILINE)
    allowed = {room: set(re.findall(r"`(\w+)/`", others)) for room, others in rows}
    rooms = [room for room, _ in rows]
    assert sorted(rooms) == sorted(p.name for p in source.iterdir() if p.is_dir())
    # Nothing includes what comes after it: there is no cycle.
    assert not [room for i, room in enumerate(rooms) if not allowed[room] <= set(rooms[:i])]
    wrong = []
    for path in sorted(source.rglob("*")):
        if path.suffix in {".cpp", ".h"}:
            room = path.relative_to(source).parts[0]
            others = set(included_folders(path, source)) & set(rooms)
            wrong += ["%s includes %s/" % (name(path), other) for other in others - allowed[room] - {room}]
    assert not wrong


# The rooms of the compiler: each may include those before it. Headers in include/fp8 come before the sources of their folder.
ROOMS = """
    Dialect/FP8/IR Analysis Dialect/FP8/Transforms Conversion Conversion/ExpandMath Conversion/ExpandRows
    Conversion/ExpandScaling Conversion/FP8ToLinalg/Cast Conversion/FP8ToLinalg/Matmul Conversion/FP8ToLinalg
    Conversion/FP8ToGPU/Kernel Conversion/FP8ToGPU/TensorCores Conversion/FP8ToGPU/Attention Conversion/FP8ToGPU/Cast
    Conversion/FP8ToGPU/Matmul
    Conversion/FP8ToGPU/Matmul/Mma Conversion/FP8ToGPU/Matmul/Wide Conversion/FP8ToGPU
    Target/Host Target/Host/EntryPoints Target/Host/CodeGen Target Target/CPU Target/PTX/Kernels Target/PTX/Code Target/PTX
    Report Pipelines Compiler CAPI
""".split()


def find_room(path):
    """The number of a file's room: that of the deepest folder which is one; none for InitAll, which registers all of them.

    A header in include/fp8 has the number of the first room of its library.
    """
    base = ROOT / "include/fp8" if path.is_relative_to(ROOT / "include") else ROOT / "lib"
    folder = str(path.parent.relative_to(base))
    rooms = [room for room in ROOMS if folder == room or folder.startswith(room + "/")]
    if not rooms:
        return None
    room = max(rooms, key=len)
    inner = [ROOMS.index(other) for other in ROOMS if other.startswith(room + "/")] if base.name == "fp8" else []
    return min([ROOMS.index(room), *inner])


def test_rooms_of_the_compiler_include_those_before():
    code = {p for p in SOURCES if p.is_relative_to(ROOT / "lib") or p.is_relative_to(ROOT / "include/fp8")}
    wrong = []
    for path in sorted(code):
        for header in re.findall(r'#include "([^"]+)"', path.read_text()):
            targets = [p for p in ((path.parent / header).resolve(), ROOT / "include" / header) if p in code]
            if targets and None not in (find_room(path), find_room(targets[0])) and find_room(targets[0]) > find_room(path):
                wrong.append("%s includes %s" % (name(path), header))
    assert not wrong


def test_only_the_emulator_includes_its_private_headers():
    folder = ROOT / "runtime/emulator"
    rooms = {p.name for p in (folder / "src").iterdir() if p.is_dir()}
    public = [p for p in SOURCES if p.is_relative_to(folder / "include")]
    users = [p for p in SOURCES if "fp8emu/" in p.read_text() and not p.is_relative_to(folder)]
    assert public and users
    assert not [name(p) for p in public + users if set(included_folders(p, folder / "src")) & rooms]


PACKAGE = {}  # of the modules in python/src: their files by their names
for path in (ROOT / "python/src/fp8").rglob("*.py"):
    PACKAGE[".".join(path.relative_to(ROOT / "python/src").with_suffix("").parts).removesuffix(".__init__")] = path


def imported_modules(module):
    """The modules of the package that a module's import statements name, those in functions and for type checkers too."""
    package = module.split(".") if PACKAGE[module].name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(PACKAGE[module].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join(base + (node.module.split(".") if node.module else []))
            for alias in node.names:
                yield from [name for name in (f"{source}.{alias.name}", source) if name in PACKAGE][:1]


def test_modules_of_the_package_import_each_other_in_one_direction():
    imports = {module: set(imported_modules(module)) - {module} for module in PACKAGE}
    assert sum(map(len, imports.values())) > len(PACKAGE)
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        pytest.fail("a circle of imports: " + " <- ".join(error.args[1]))


def types_of(path):
    """The types that a file defines in a namespace of a name, with it; such a type is one in all of a program."""
    namespaces = []
    for line in path.read_text().splitlines():
        if opened := re.match(r"(?:inline )?namespace ?([\w:]*) ?\{", line):
            namespaces.append(opened[1])
        elif re.match(r"\} // (?:inline )?namespace", line) and namespaces:
            namespaces.pop()
        elif (defined := re.match(r"(?:template <.*> )?(?:struct|class) (\w+)(?: final)?(?: :[^;]*)?(?: \{|$)", line)) and namespaces and all(namespaces):
            yield "::".join([*namespaces, defined[1]])


def test_types_of_one_name_are_one_type():
    """The compiler keeps one copy of what it defines for two types of a name, such as a destructor, and does not tell."""
    found = collections.defaultdict(set)
    for path in SOURCES:
        if path.is_relative_to(ROOT / "lib") or path.is_relative_to(ROOT / "include"):
            for defined in types_of(path):
                found[defined].add(name(path))
    assert len(found) > 100
    assert not {defined: files for defined, files in found.items() if len(files) > 1}


@pytest.mark.skipif(not shutil.which("clang-format-22"), reason="clang-format-22 is not installed")
def test_code_is_formatted():
    command = ["clang-format-22", "--dry-run", "-Werror", *map(str, SOURCES)]
    done = subprocess.run(command, capture_output=True, text=True)
    files = sorted(set(re.findall(r"^(.*?):\d+:\d+: error", done.stderr, re.MULTILINE)))
    assert done.returncode == 0, "run clang-format-22 -i on:\n" + "\n".join(files)
