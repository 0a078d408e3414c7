"""Random functions, computed by the host and by a kernel on a private software GPU: integers of
every width, both floats, conversions, branches, loops, tables. They must agree in every bit. TAP on
stdout; skipped without nvcc.

usage: arithmetic.py BUILD [SEED [FUNCTIONS]]
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
SEED, FUNCTIONS = (int(sys.argv[2]) if len(sys.argv) > 2 else 20,
                   int(sys.argv[3]) if len(sys.argv) > 3 else 40)
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
SOFTGPU, DEADLINE_S = f"{BUILD}/softgpu/cli/softgpu", 360
# One rounding for each operation, on both sides; signed numbers wrap.
FLAGS = ["-w", "-cudart", "shared", "-std=c++17", "-fmad=false", "-Xcompiler",
         "-ffp-contract=off,-fwrapv,-O1"]
# An optimised build, and one in which every value goes through memory.
VARIANTS = {"compute_75": ["-arch=compute_75"], "compute_90_debug": ["-arch=compute_90", "-G"]}

WIDTHS = {"int8_t": 8, "uint8_t": 8, "int16_t": 16, "uint16_t": 16, "int32_t": 32, "uint32_t": 32,
          "int64_t": 64, "uint64_t": 64}
FLOATS = ["float", "double"]
INPUTS = [("p.a", "int8_t"), ("p.b", "uint8_t"), ("p.c", "int16_t"), ("p.d", "uint16_t"),
          ("p.e", "int32_t"), ("p.f", "uint32_t"), ("p.g", "int64_t"), ("p.h", "uint64_t"),
          ("p.x", "float"), ("p.y", "double")]

# Operations that C leaves undefined have a definition here, the same on both sides.
HEAD = """
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#define BOTH __host__ __device__
#ifdef __CUDA_ARCH__
#define COUNT(v) __popc(v)
#define LEADING(v) __clz(v)
#define REVERSE(v) __brev(v)
#else
#define COUNT(v) __builtin_popcount(v)
#define LEADING(v) ((v) ? __builtin_clz(v) : 32)
#define REVERSE(v) reverse_slowly(v)
#endif
BOTH static inline uint32_t reverse_slowly(uint32_t v)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (v >> i & 1) << (31 - i);
	return r;
}
BOTH static inline int64_t quotient(int64_t a, int64_t b) { return b == 0 || b == -1 ? a : a / b; }
BOTH static inline int64_t remains(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
template <class F> BOTH static inline int64_t whole(F f)
{
	return f == f && fabs((double)f) < 1e18 ? (int64_t)f : 42;
}
BOTH static inline uint64_t count(uint64_t v)
{
	return COUNT((uint32_t)v) + COUNT((uint32_t)(v >> 32));
}
BOTH static inline uint64_t leading(uint64_t v)
{
	return v >> 32 ? LEADING((uint32_t)(v >> 32)) : 32 + LEADING((uint32_t)v);
}
BOTH static inline uint64_t reverse(uint64_t v)
{
	return (uint64_t)REVERSE((uint32_t)v) << 32 | REVERSE((uint32_t)(v >> 32));
}
BOTH static inline uint64_t rotate(uint64_t v) { return v << 29 | v >> 35; }
template <class F> BOTH static inline F root(F f) { return sqrt(fabs(f)); }
BOTH static inline uint64_t bits(float f) { uint32_t v; memcpy(&v, &f, 4); return f == f ? v : 1; }
BOTH static inline uint64_t bits(double f) { uint64_t v; memcpy(&v, &f, 8); return f == f ? v : 1; }

struct input {
	int8_t a; uint8_t b; int16_t c; uint16_t d; int32_t e; uint32_t f; int64_t g; uint64_t h;
	float x; double y;
};
"""

MAIN = """
int main()
{
	const int n = 256;
	std::vector<input> in(n);
	std::vector<uint64_t> got(n);
	uint64_t state = 88172645463325252ull, *out;
	int differ = 0;
	input *on_device;
	auto next = [&] {
		state ^= state << 13; state ^= state >> 7; state ^= state << 17;
		return state;
	};

	for (int i = 0; i < n; i++) {
		uint64_t mask = i % 3 ? ~0ull : 15;

		in[i] = {(int8_t)(next() & mask), (uint8_t)(next() & mask),
			(int16_t)(next() & mask), (uint16_t)(next() & mask),
			(int32_t)(next() & mask), (uint32_t)(next() & mask),
			(int64_t)(next() & mask), next() & mask,
			(float)((int64_t)(next() >> 40) - (1 << 23)) / 1024,
			((int64_t)(next() >> 20) - (1ll << 43)) / 65536.0};
	}
	if (cudaMalloc(&on_device, n * sizeof(input)) || cudaMalloc(&out, n * 8) ||
		cudaMemcpy(on_device, in.data(), n * sizeof(input), cudaMemcpyHostToDevice))
		return 2;
	for (int k = 0; k < COUNT_OF(tests); k++) {
		tests[k].kernel<<<n / 64, 64>>>(on_device, out);
		if (cudaMemcpy(got.data(), out, n * 8, cudaMemcpyDeviceToHost)) {
			printf("function %d: %s\\n", k, cudaGetErrorString(cudaGetLastError()));
			return 2;
		}
		for (int i = 0; i < n; i++) {
			uint64_t want = tests[k].host(in[i]);

			if (got[i] == want)
				continue;
			printf("function %d of input %d: %llx, expected %llx\\n", k, i,
				(unsigned long long)got[i], (unsigned long long)want);
			differ++;
			break;
		}
	}
	return differ != 0;
}
"""


class Writer:
    """Expressions of a type over the names of `known`, at most `depth` deep."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def pick(self, of):
        return self.chance.choice(of)

    def literal(self, kind):
        if kind in FLOATS:  # no zero: compilers may turn 0 - x into -x
            value = self.pick([1.0, -1.5, 3.25, 1e10, -7.125e-3, self.chance.uniform(-1000, 1000)])
            return f"{kind}({value!r})"
        width = WIDTHS[kind]
        value = self.pick([0, 1, 2, 3, 7, 31, 127, 255, 65535, 0x7fffffff,
                           self.chance.getrandbits(width)]) & ((1 << width) - 1)
        return f"({kind}){value:#x}ull"

    def condition(self, known, depth):
        kind = self.pick([*WIDTHS, *FLOATS])
        left = self.of(kind, known, depth)
        comparison = self.pick(["<", "<=", ">", ">=", "==", "!="])
        return f"({left} {comparison} {self.of(kind, known, depth)})"

    def of(self, kind, known, depth):
        names = [name for name, its in known if its == kind]
        if depth <= 0 or self.chance.random() < 0.12:
            return self.pick(names) if names and self.chance.random() < 0.8 else self.literal(kind)
        return (self.of_float if kind in FLOATS else self.of_integer)(kind, known, depth - 1)

    def of_float(self, kind, known, depth):
        same = lambda: self.of(kind, known, depth)
        return self.pick([
            lambda: f"({same()} {self.pick('+-*')} {same()})",
            lambda: f"({same()} {self.pick('+-*')} {same()})",
            lambda: f"({same()} / ({kind}(1.0) + fabs({same()})))",
            lambda: f"({kind})({self.of(self.pick([*WIDTHS]), known, depth)})",
            lambda: f"({kind})({self.of(self.pick(FLOATS), known, depth)})",
            lambda: f"({self.condition(known, depth)} ? {same()} : {same()})",
            lambda: f"{self.pick(['fabs', 'floor', 'trunc', '-', 'root'])}(({kind}){same()})",
        ])()

    def of_integer(self, kind, known, depth):
        width = WIDTHS[kind]
        wide = "uint64_t" if width == 64 else "uint32_t"
        own = f"uint{width}_t"
        same = lambda: self.of(kind, known, depth)
        operation = lambda: (f"({kind})(({wide})({same()}) "
                             f"{self.pick(['+', '-', '*', '&', '|', '^'])} ({wide})({same()}))")
        return self.pick([
            operation,
            operation,
            lambda: (f"({kind})(({wide}){same()} << "
                     f"({self.of('uint32_t', known, depth)} & {width - 1}))"),
            lambda: f"({kind})({same()} >> ({self.of('uint32_t', known, depth)} & {width - 1}))",
            lambda: f"({kind})(({own}){same()} {self.pick('/%')} (({own}){same()} | 1))",
            lambda: (f"({kind}){self.pick(['quotient', 'remains'])}((int64_t){same()}, "
                     f"(int64_t){self.of(self.pick([*WIDTHS]), known, depth)})"),
            lambda: f"({kind})({self.of(self.pick([*WIDTHS]), known, depth)})",
            lambda: f"({kind})whole({self.of(self.pick(FLOATS), known, depth)})",
            lambda: f"({self.condition(known, depth)} ? {same()} : {same()})",
            lambda: f"({kind})(~{same()})",
            lambda: (f"({kind}){self.pick(['count', 'leading', 'reverse', 'rotate'])}"
                     f"({self.of('uint64_t', known, depth)})"),
        ])()

    def function(self, number):
        """Some variables, a loop over an array, a switch, and a sum of all of it."""
        known, lines = list(INPUTS), ["uint64_t sum = 0;", "uint32_t cells[8];"]
        for n in range(self.chance.randrange(2, 6)):
            kind = self.pick([*WIDTHS, *FLOATS])
            lines.append(f"{kind} v{n} = {self.of(kind, known, 4)};")
            known.append((f"v{n}", kind))
        inner = [*known, ("sum", "uint64_t")]
        lines.append(f"for (int i = 0; i < 8; i++) cells[i] = {self.of('uint32_t', known, 3)} + i "
                     "* 77;")
        lines.append(f"for (int i = 0; i < (int)({self.of('uint32_t', known, 2)} & 15); i++) {{")
        lines.append(f"\tcells[(sum + i) & 7] ^= {self.of('uint32_t', inner, 3)};")
        lines.append(f"\tsum = sum * 31 + cells[i & 7] + {self.of('uint64_t', inner, 3)};")
        lines.append(f"\tif ({self.condition(inner, 2)}) break;\n\t}}")
        lines.append(f"switch (sum % 7) {{ case 0: sum += {self.of('uint64_t', known, 3)}; break; "
                     f"case 1: sum ^= {self.of('uint64_t', known, 3)}; break;")
        lines.append("case 2: sum -= cells[3]; /* and on */ case 3: sum *= 3; break; case 5: sum = "
                     "rotate(sum); break; default: sum += 5; }")
        lines += ["sum = sum * 1000003 + "
                  f"{f'bits({name})' if kind in FLOATS else f'(uint64_t){name}'};"
                  for name, kind in known[len(INPUTS):]]
        body = "\n\t".join(lines)
        return (f"BOTH static uint64_t f{number}(const input &p)\n"
                f"{{\n\t{body}\n\treturn sum;\n}}\n"
                f"static uint64_t host{number}(const input &p) {{ return f{number}(p); }}\n"
                f"__global__ void kernel{number}(const input *p, uint64_t *out)\n"
                f"{{\n\tint i = blockIdx.x * blockDim.x + threadIdx.x;\n\n"
                f"\tout[i] = f{number}(p[i]);\n}}\n")


def program():
    writer = Writer(SEED)
    rows = "".join(f"\t{{kernel{n}, host{n}}},\n" for n in range(FUNCTIONS))
    table = ("struct test { void (*kernel)(const input *, uint64_t *); "
             "uint64_t (*host)(const input &); };\n"
             f"static const test tests[] = {{\n{rows}}};\n")
    return (HEAD + "".join(writer.function(n) for n in range(FUNCTIONS)) + table
            + "#define COUNT_OF(a) (int)(sizeof(a) / sizeof((a)[0]))\n"
            + MAIN)


def run(flags, directory, environment):
    """What is wrong, or nothing."""
    built = subprocess.run([NVCC, *FLAGS, *flags, "-o", f"{directory}/program",
                            f"{directory}/program.cu"], cwd=directory, capture_output=True,
                           text=True, timeout=DEADLINE_S)
    if built.returncode:
        return built.stdout + built.stderr
    done = subprocess.run([SOFTGPU, "run", "--", f"{directory}/program"], env=environment,
                          capture_output=True, text=True, timeout=DEADLINE_S)
    return "" if done.returncode == 0 else f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def main():
    if not NVCC:
        print("1..0 # SKIP nvcc is not here")
        return
    print(f"1..{len(VARIANTS)}")
    with tempfile.TemporaryDirectory(prefix="softgpu-arithmetic-") as directory:
        environment = dict(os.environ, SOFTGPU_DIR=f"{directory}/gpu",
                           SOFTGPU_LIB=f"{BUILD}/softgpu/driver")
        environment.pop("LD_LIBRARY_PATH", None)
        with open(f"{directory}/program.cu", "w") as f:
            f.write(program())
        subprocess.run([SOFTGPU, "start", "--model", "h100"], env=environment, check=True,
                       timeout=DEADLINE_S)
        try:
            for number, (name, flags) in enumerate(VARIANTS.items(), 1):
                wrong = run(flags, directory, environment)
                print(f"{'not ok' if wrong else 'ok'} {number} - host_and_kernel_agree_{name}")
                if wrong:
                    print(f"# arithmetic.py BUILD {SEED} {FUNCTIONS}\n# "
                          + wrong.strip().replace("\n", "\n# "))
        finally:
            subprocess.run([SOFTGPU, "stop"], env=environment, timeout=DEADLINE_S)


main()
