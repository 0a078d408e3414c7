"""A cuda.h with a symbol that has no class is refused by name. TAP on stdout; argument:
tools/gen-symbols. Skips without a toolkit."""
import os
import subprocess
import sys
import tempfile

GENERATOR = sys.argv[1]
TOOLKIT = next((os.path.join(os.environ[v], "include") for v in ("CUDA_HOME", "CUDA_PATH")
                if v in os.environ), "/usr/local/cuda/include")
DECLARED = {"cuda.h": "CUresult CUDAAPI cuBrandNew(int a);\n",
            "cudaTypedefs.h": "typedef CUresult (CUDAAPI *PFN_cuBrandNew_v12000)(int a);\n",
            "cudaProfiler.h": "", "cudaProfilerTypedefs.h": ""}

print("1..1")
if not all(os.path.exists(f"{TOOLKIT}/{name}") for name in DECLARED):
    print(f"ok 1 - a_symbol_without_a_class_is_refused_by_name # SKIP no CUDA toolkit at {TOOLKIT}")
    sys.exit()
with tempfile.TemporaryDirectory(prefix="tandem-symbols-") as folder:
    for name, more in DECLARED.items():
        with open(f"{TOOLKIT}/{name}") as f:
            text = f.read()
        with open(f"{folder}/{name}", "w") as f:
            f.write(text + more)
    done = subprocess.run([GENERATOR, "--check", "--include", folder], capture_output=True,
                          text=True)
if done.returncode == 77:
    print(f"ok 1 - a_symbol_without_a_class_is_refused_by_name # SKIP {done.stdout.strip()}")
elif done.returncode == 1 and "no class" in done.stderr and "cuBrandNew" in done.stderr:
    print("ok 1 - a_symbol_without_a_class_is_refused_by_name")
else:
    print("not ok 1 - a_symbol_without_a_class_is_refused_by_name\n# " + str(done))
