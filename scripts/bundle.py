"""Assemble workerd's Pyodide bundle from npm's `pyodide` package.

At every start workerd downloads a bundle with the Python interpreter. For local runs this script makes the
same bundle out of what npm installed, so that a start needs no network. The bundle holds three modules: the
Emscripten glue, the interpreter and the standard library; everything else is inside the workerd binary.

workerd forbids `eval` and compiling WebAssembly at run time, so the glue has to call the runtime's helpers
where it calls the globals. A glue that does not look exactly as expected is refused: see `patch_glue`.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import capnp

if TYPE_CHECKING:
    from collections.abc import Sequence

BUNDLE_NAME = "pyodide_dev.capnp.bin"
KEY_NAME = "key"

SCHEMA = """
@0xc8cbb234694939d5;

struct Bundle {
  modules @0 :List(Module);
}

struct Module {
  name @0 :Text;
  union {
    src @1 :Data;
    wasm @4 :Data;
    data @5 :Data;
    json @6 :Text;
  }
  tsDeclaration @3 :Text;
  type @2 :ModuleType;
  compileCache @7 :Data;
}

enum ModuleType {
  bundle @0;
  builtin @1;
  internal @2;
}
"""

PRELUDE = (
    "import{newWasmModule,wasmInstantiate,monotonicDateNow,getRandomValues,patchedLoadLibData,"
    'location,addEventListener}from"pyodide-internal:builtin_wrappers";\n'
    'const refuseEval=()=>{throw new Error("eval is not allowed in a Worker")};\n'
)


class GlueError(Exception):
    """The glue is not the one that the patches were written for."""


@dataclass(frozen=True)
class Patch:
    """Replace a fragment of the glue, which must occur exactly `count` times."""

    fragment: str
    replacement: str
    count: int


LOAD_LIB_DATA = (
    "function loadLibData(){if(handle){var data=HEAPU32[handle+28>>>2>>>0];"
    "var dataSize=HEAPU32[handle+32>>>2>>>0];if(data&&dataSize){var libData=HEAP8.slice(data,data+dataSize);"
    "return flags.loadAsync?Promise.resolve(libData):libData}}var f=findLibraryFS(libName,flags.rpath);"
    'if(f){var libData=FS.readFile(f,{encoding:"binary"});'
    "return flags.loadAsync?Promise.resolve(libData):libData}var libFile=locateFile(libName);"
    "if(flags.loadAsync){return asyncLoad(libFile)}if(!readBinary){throw new Error("
    "`${libFile}: file not found, and synchronous loading of external files is not available`)}"
    "return readBinary(libFile)}"
)
PATCHED_LOAD_LIB_DATA = (
    "function loadLibData(){var libData=patchedLoadLibData(Module,libName,flags.rpath);"
    "return flags.loadAsync?Promise.resolve(libData):libData}"
)

PATCHES = (
    Patch("new WebAssembly.Module(", "newWasmModule(", 4),
    Patch("WebAssembly.instantiate(", "wasmInstantiate(", 2),
    Patch("Date.now", "monotonicDateNow", 22),
    Patch("crypto.getRandomValues(", "getRandomValues(Module,", 1),
    Patch("getMemory(", "Module.getMemoryPatched(Module,libName,", 1),
    Patch("eval(", "refuseEval(", 6),
    Patch(LOAD_LIB_DATA, PATCHED_LOAD_LIB_DATA, 1),
    Patch(
        "export default _createPyodideModule;",
        "export{_createPyodideModule,_createPyodideModule as default};",
        1,
    ),
)


def patch_glue(glue: str) -> str:
    """Make the glue call the runtime's helpers; refuse a glue with other fragments than expected."""
    for patch in PATCHES:
        found = glue.count(patch.fragment)
        if found != patch.count:
            raise GlueError(
                f"expected {patch.count} times in the Pyodide glue, found {found} times: {patch.fragment[:120]}"
            )
    for patch in PATCHES:
        glue = glue.replace(patch.fragment, patch.replacement)
    return PRELUDE + glue


@functools.cache
def load_schema() -> Any:
    """The schema as pycapnp's module, loaded once: Cap'n Proto refuses to see an id twice in a process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bundle.capnp"
        file.write_text(SCHEMA, encoding="utf-8")
        return capnp.load(str(file))


def write_bundle(pyodide: Path, target: Path) -> None:
    """Write the bundle made from an installed `pyodide` package to the file `target`."""
    glue = patch_glue((pyodide / "pyodide.asm.mjs").read_text(encoding="utf-8"))
    modules = (
        ("pyodide.asm", "src", glue.encode()),
        ("pyodide.asm.wasm", "wasm", (pyodide / "pyodide.asm.wasm").read_bytes()),
        ("python_stdlib.zip", "data", (pyodide / "python_stdlib.zip").read_bytes()),
    )
    message = load_schema().Bundle.new_message()
    entries = message.init("modules", len(modules))
    for entry, (name, kind, content) in zip(entries, modules, strict=True):
        entry.name = f"pyodideRuntime-internal:{name}"
        entry.type = "internal"
        setattr(entry, kind, content)
    with target.open("wb") as file:
        message.write(file)


def package_version(package: Path) -> str:
    """The version of an installed npm package."""
    version = json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]
    if not isinstance(version, str):
        raise TypeError(f"{package / 'package.json'} has no version")
    return version


def bundle_key(node_modules: Path) -> str:
    """What the bundle depends on: both packages' versions and this script itself."""
    script = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    versions = [f"{name} {package_version(node_modules / name)}" for name in ("workerd", "pyodide")]
    return ", ".join([*versions, f"script {script}"])


def ensure_bundle(node_modules: Path, folder: Path) -> bool:
    """Make the bundle in `folder` unless it is there for these versions; say whether it was made."""
    key = bundle_key(node_modules)
    key_file, bundle = folder / KEY_NAME, folder / BUNDLE_NAME
    if bundle.exists() and key_file.exists() and key_file.read_text(encoding="utf-8") == key:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    key_file.unlink(missing_ok=True)
    unfinished = bundle.with_suffix(".part")
    write_bundle(node_modules / "pyodide", unfinished)
    unfinished.replace(bundle)
    key_file.write_text(key, encoding="utf-8")
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: the npm folder and the cache folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("node_modules", type=Path, help="npm's folder of installed packages")
    parser.add_argument("folder", type=Path, help="the folder that keeps the bundle")
    options = parser.parse_args(arguments)
    try:
        ensure_bundle(options.node_modules, options.folder)
    except GlueError as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
