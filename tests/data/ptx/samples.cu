// What CUDA programs do, one kernel each. nvcc -ptx -std=c++17 -arch=sm_90 -o samples.ptx
#include <cstdio>

#include <cuda_pipeline.h>

// Double-buffered tiles by cp.async: c = a b, n a multiple of 16.
extern "C" __global__ void matmul_async(const float *a, const float *b, float *c, int n)
{
	__shared__ __align__(16) float as[2][16][16], bs[2][16][16];
	int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
	float sum = 0;

	__pipeline_memcpy_async(&as[0][y][x], &a[row * n + x], 4);
	__pipeline_memcpy_async(&bs[0][y][x], &b[y * n + col], 4);
	__pipeline_commit();
	for (int k = 0; k < n / 16; k++) {
		int next = (k + 1) * 16;

		if (next < n) {
			__pipeline_memcpy_async(&as[(k + 1) & 1][y][x], &a[row * n + next + x], 4);
			__pipeline_memcpy_async(
				&bs[(k + 1) & 1][y][x], &b[(next + y) * n + col], 4);
		}
		__pipeline_commit();
		__pipeline_wait_prior(1);
		__syncthreads();
		for (int j = 0; j < 16; j++)
			sum += as[k & 1][y][j] * bs[k & 1][j][x];
		__syncthreads();
	}
	c[row * n + col] = sum;
}

// Sixteen bytes at once; beyond n come zeros.
extern "C" __global__ void copy_async(const int4 *in, int4 *out, int n)
{
	extern __shared__ int4 tile[];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	__pipeline_memcpy_async(&tile[threadIdx.x], &in[i < n ? i : 0], 16, i < n ? 0 : 16);
	__pipeline_commit();
	__pipeline_wait_prior(0);
	__syncthreads();
	out[i] = tile[blockDim.x - 1 - threadIdx.x];
}

// A seven-point stencil of doubles on n^3 cells.
extern "C" __global__ void stencil(const double *in, double *out, int n)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
		return;
	for (int z = 1; z < n - 1; z++) {
		const double *p = in + (z * n + y) * n + x;

		out[p - in] =
			0.5 * p[0] + (p[-1] + p[1] + p[-n] + p[n] + p[-n * n] + p[n * n]) / 12.0;
	}
}

extern "C" __global__ void wide_atomics(unsigned long long *u, long long *s, double *d)
{
	unsigned long long t = threadIdx.x;
	double old = d[0], next;

	atomicAdd(&u[0], t << 32);
	atomicMin(&u[1], t + 5);
	atomicXor(&u[2], 1ull << (t & 63));
	atomicExch(&u[3], 99ull);
	atomicMax(&s[0], (long long)t - 20);
	atomicAdd(&d[1], 0.25);
	do { // a product, which no GPU has
		next = old;
		old = __longlong_as_double(atomicCAS((unsigned long long *)&d[0],
			__double_as_longlong(next), __double_as_longlong(next * 1.5)));
	} while (__double_as_longlong(old) != __double_as_longlong(next));
}

extern "C" __global__ void print(int n)
{
	if (threadIdx.x < n)
		printf("%s %d of %5.2f%% %c%llx\n", threadIdx.x ? "lane" : "first", threadIdx.x,
			1.5 * threadIdx.x, 'x', 0x123456789abcull + threadIdx.x);
}

__device__ __noinline__ int ackermann(int m, int n)
{
	return !m ? n + 1 : ackermann(m - 1, n ? ackermann(m, n - 1) : 1);
}

extern "C" __global__ void recurse(int *out)
{
	out[threadIdx.x] = ackermann(2, threadIdx.x & 3);
}

typedef int (*binary)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int subtract(int a, int b) { return a - b; }
__device__ int multiply(int a, int b) { return a * b; }
__device__ binary operations[] = {add, subtract, multiply};

extern "C" __global__ void function_pointers(int *out)
{
	out[threadIdx.x] = operations[threadIdx.x % 3](threadIdx.x, 7);
}

struct shape {
	__device__ virtual float area() const = 0;
};
struct square : shape {
	float side;
	__device__ square(float s) : side(s) {}
	__device__ float area() const override { return side * side; }
};
struct circle : shape {
	float radius;
	__device__ circle(float r) : radius(r) {}
	__device__ float area() const override { return 3 * radius * radius; }
};

extern "C" __global__ void virtual_calls(float *out, const int *kinds)
{
	square s(2.0f + threadIdx.x);
	circle c(1.0f + threadIdx.x);
	const shape *p = kinds[threadIdx.x] ? (const shape *)&s : &c;

	out[threadIdx.x] = p->area();
}

// A table of jumps.
extern "C" __global__ void jumps(const int *in, int *out)
{
	int v = in[threadIdx.x], r;

	switch (v) {
	case 0: r = out[32]; break;
	case 1: r = v * 17 + out[33]; break;
	case 2: r = v ^ out[34]; break;
	case 3: r = v - out[35]; break;
	case 4: r = out[36] / 3; break;
	case 5: r = out[37] << 2; break;
	case 6: r = __popc(out[38]); break;
	case 7: r = __clz(out[39]); break;
	default: r = -1;
	}
	out[threadIdx.x] = r;
}

__constant__ float weights[16] = {1, 2, 3, 4};

extern "C" __global__ void __launch_bounds__(256, 2) convolve(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;

	for (int k = 0; k < 16 && i + k < n; k++)
		sum += weights[k] * in[i + k];
	if (i < n)
		out[i] = sum;
}

// Four and two bytes at a time.
extern "C" __global__ void dots(const int *a, const unsigned *b, int *out)
{
	int t = threadIdx.x;

	out += 6 * t;
	out[0] = __dp4a(a[t], (int)b[t], 5);
	out[1] = (int)__dp4a((unsigned)a[t], b[t], 7u);
	out[2] = __dp2a_lo(a[t], (int)b[t], 1);
	out[3] = (int)__dp2a_hi((unsigned)a[t], b[t], 2u);
	out[4] = (int)__vadd4(a[t], b[t]);
	out[5] = (int)__vabsdiffu4(a[t], b[t]);
}

extern "C" __global__ void bit_fields(const unsigned *in, unsigned *out)
{
	unsigned v = in[threadIdx.x], w;
	int s;

	out += 8 * threadIdx.x;
	asm("bfe.u32 %0, %1, 5, 9;" : "=r"(out[0]) : "r"(v));
	asm("bfe.s32 %0, %1, 20, 7;" : "=r"(s) : "r"(v));
	asm("bfi.b32 %0, %1, %2, 8, 12;" : "=r"(out[2]) : "r"(v), "r"(0xaaaaaaaau));
	asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(out[3]) : "r"(v & 31), "r"(5));
	asm("fns.b32 %0, %1, 0, 3;" : "=r"(w) : "r"(v));
	asm("szext.wrap.s32 %0, %1, 11;" : "=r"(out[5]) : "r"(v));
	out[1] = s;
	out[4] = w;
	out[6] = __funnelshift_l(v, ~v, 13);
	out[7] = __byte_perm(v, ~v, 0x3715);
}

// A message from thread 0 of each pair of warps to the other, by release and acquire.
extern "C" __global__ void messages(int *flags, int *data)
{
	int pair = threadIdx.x / 64, seen;

	if (threadIdx.x % 64 == 32) {
		data[pair] = 100 + pair;
		asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(&flags[pair]), "r"(1)
			     : "memory");
	} else if (threadIdx.x % 64 == 0) {
		do
			asm volatile("ld.acquire.gpu.global.b32 %0, [%1];"
				     : "=r"(seen)
				     : "l"(&flags[pair])
				     : "memory");
		while (!seen);
		data[16 + pair] = data[pair] * 2;
		__threadfence_system();
	}
}

// Lists that the block chains through volatile shared memory.
extern "C" __global__ void volatile_sum(const int *in, int *out)
{
	__shared__ volatile int cells[64];
	int t = threadIdx.x;

	cells[t] = in[t];
	__syncthreads();
	if (t < 32) {
		for (int step = 32; step; step /= 2) {
			int other = cells[t + step];

			__syncwarp();
			cells[t] = cells[t] + other;
			__syncwarp();
		}
	}
	if (!t)
		*out = cells[0];
}

// Loads and stores with every hint, of two and four words.
extern "C" __global__ void hints(const float4 *in, float4 *out, const double2 *d, double2 *e)
{
	int t = threadIdx.x;
	float4 v = __ldg(&in[t]), w = __ldcs(&in[t + 32]), x = __ldcv(&in[t]);

	__stcg(&out[t], make_float4(v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w));
	__stwt(&out[t + 32], make_float4(x.w, x.z, x.y, x.x));
	e[t] = __ldlu(&d[t]);
}
