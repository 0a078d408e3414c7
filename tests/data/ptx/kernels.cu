// Kernels that the interpreter's tests run against references on the CPU; see README.md.
#include <cassert>

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" __global__ void saxpy4(float k, const float4 *x, float4 *y, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		float4 v = x[i], w = y[i];

		w.x = fmaf(k, v.x, w.x);
		w.y = fmaf(k, v.y, w.y);
		w.z = fmaf(k, v.z, w.z);
		w.w = fmaf(k, v.w, w.w);
		y[i] = w;
	}
}

extern "C" __global__ void transpose(const int *in, int *out, int n)
{
	__shared__ int tile[16][17];
	int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;

	if (x < n && y < n)
		tile[threadIdx.y][threadIdx.x] = in[y * n + x];
	__syncthreads();
	x = blockIdx.y * 16 + threadIdx.x;
	y = blockIdx.x * 16 + threadIdx.y;
	if (x < n && y < n)
		out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void reduce_shared(const int *in, int *out, int n)
{
	extern __shared__ int sums[];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	sums[threadIdx.x] = i < n ? in[i] : 0;
	__syncthreads();
	for (int half = blockDim.x / 2; half; half /= 2) {
		if (threadIdx.x < half)
			sums[threadIdx.x] += sums[threadIdx.x + half];
		__syncthreads();
	}
	if (!threadIdx.x)
		atomicAdd(out, sums[0]);
}

extern "C" __global__ void reduce_warp(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 0;

	for (int step = 16; step; step /= 2)
		v += __shfl_down_sync(~0u, v, step);
	if (!(threadIdx.x & 31))
		atomicAdd(out, v);
}

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float x[16][16], y[16][16];
	int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
	float sum = 0;

	for (int k = 0; k < n; k += 16) {
		x[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
		y[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
		__syncthreads();
		for (int j = 0; j < 16; j++)
			sum += x[threadIdx.y][j] * y[j][threadIdx.x];
		__syncthreads();
	}
	c[row * n + col] = sum;
}

extern "C" __global__ void scan(const unsigned *in, unsigned *out)
{
	__shared__ unsigned v[256];
	unsigned t = threadIdx.x, mine = in[blockIdx.x * 256 + t];

	v[t] = mine;
	__syncthreads();
	for (unsigned step = 1; step < 256; step *= 2) {
		unsigned left = t >= step ? v[t - step] : 0;

		__syncthreads();
		v[t] += left;
		__syncthreads();
	}
	out[blockIdx.x * 256 + t] = v[t];
}

extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n)
{
	__shared__ unsigned mine[256];

	for (int k = threadIdx.x; k < 256; k += blockDim.x)
		mine[k] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&mine[in[i]], 1);
	__syncthreads();
	for (int k = threadIdx.x; k < 256; k += blockDim.x)
		atomicAdd(&bins[k], mine[k]);
}

extern "C" __global__ void hash_mix(unsigned *out, int rounds)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = i * 0x9e3779b9u + 1;

	for (int r = 0; r < rounds; r++) {
		h ^= h >> 16;
		h *= 0x85ebca6bu;
		h = __funnelshift_l(h, h, 13) + __brev(h) + __popc(h) + __clz(h);
		h ^= __byte_perm(h, i, 0x5140);
	}
	out[i] = h;
}

extern "C" __global__ void monte_carlo(unsigned long long *hits, int draws)
{
	unsigned long long s = blockIdx.x * blockDim.x + threadIdx.x + 1, inside = 0;

	for (int d = 0; d < draws; d++) {
		s = s * 6364136223846793005ull + 1442695040888963407ull;
		unsigned x = s >> 48, y = s >> 32 & 0xffff;

		inside += (unsigned long long)x * x + (unsigned long long)y * y < 1ull << 32;
	}
	atomicAdd(hits, inside);
}

static __device__ unsigned long long timer()
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

extern "C" __global__ void spin_timer(unsigned long long ns, unsigned long long *out)
{
	unsigned long long start = timer(), now;

	do
		now = timer();
	while (now - start < ns);
	out[blockIdx.x * blockDim.x + threadIdx.x] = now - start;
}

extern "C" __global__ void spin_sleep(unsigned long long ns, unsigned long long *out)
{
	unsigned long long start = timer(), now;

	do {
		__nanosleep(1000);
		now = timer();
	} while (now - start < ns);
	out[blockIdx.x * blockDim.x + threadIdx.x] = now - start;
}

extern "C" __global__ void spin_clock(long long cycles, long long *out)
{
	long long start = clock64(), now;

	do
		now = clock64();
	while (now - start < cycles);
	*out = now - start;
}

extern "C" __global__ void poll_flag(volatile int *flag, int *out)
{
	while (!*flag)
		;
	*out = *flag;
}

extern "C" __global__ void hand_over(volatile int *slots)
{
	if (threadIdx.x == 0) {
		while (!slots[1])
			;
		slots[0] = slots[1] + 1;
	} else if (threadIdx.x == 1) {
		slots[1] = 41;
	}
}

extern "C" __global__ void grid_barrier(unsigned *count, unsigned *out)
{
	__threadfence();
	atomicAdd(count, 1);
	while (*(volatile unsigned *)count < gridDim.x * blockDim.x)
		;
	out[blockIdx.x * blockDim.x + threadIdx.x] = *(volatile unsigned *)count;
}

extern "C" __global__ void collatz(unsigned *out)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 1, steps = 0;

	for (unsigned long long v = i; v != 1; steps++)
		v = v & 1 ? 3 * v + 1 : v / 2;
	out[i - 1] = steps;
}

extern "C" __global__ void wide_math(const long long *a, const double *x, long long *b, double *y)
{
	int i = threadIdx.x;
	long long p = a[i], q = a[(i + 1) & 31] | 1;

	b[4 * i] = p / q;
	b[4 * i + 1] = p % q;
	b[4 * i + 2] = __mul64hi(p, q);
	b[4 * i + 3] = (long long)x[i] + (unsigned char)p - (short)q + min(p, q);
	y[4 * i] = sqrt(fabs(x[i])) + 1.0 / x[i];
	y[4 * i + 1] = fma(x[i], x[i], -x[(i + 1) & 31]);
	y[4 * i + 2] = floor(x[i]) + (double)p + (double)(float)x[i];
	y[4 * i + 3] = pow(fabs(x[i]), 1.5) + exp(x[i] * 0.01) + sin(x[i]);
}

extern "C" __global__ void float_math(const float *x, float *y)
{
	int i = threadIdx.x;

	y[8 * i] = __sinf(x[i]) + __cosf(x[i]);
	y[8 * i + 1] = exp2f(x[i] * 0.1f) + log2f(fabsf(x[i]) + 1);
	y[8 * i + 2] = rsqrtf(fabsf(x[i]) + 1) + sqrtf(fabsf(x[i]));
	y[8 * i + 3] = __saturatef(x[i]) + fminf(x[i], 2.0f) + fmaxf(x[i], -2.0f);
	y[8 * i + 4] = __fadd_rz(x[i], 1e-8f) + __fdiv_ru(1.0f, x[i]);
	y[8 * i + 5] = (float)(int)x[i] + rintf(x[i]) + (float)(unsigned char)fabsf(x[i]);
	y[8 * i + 6] = expf(x[i] * 0.1f) * tanhf(x[i]);
	y[8 * i + 7] = sinf(x[i] * 100.0f) + copysignf(3.0f, x[i]);
}

extern "C" __global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f, double *d)
{
	int t = threadIdx.x;

	atomicAdd(i, t);
	atomicMin(i + 1, -t);
	atomicMax(i + 2, t);
	atomicExch(i + 3, 7);
	atomicCAS(i + 4, 0, 5);
	atomicAnd(u, ~(1u << (t & 31)));
	atomicOr(u + 1, 1u << (t & 31));
	atomicXor(u + 2, t);
	atomicInc(u + 3, 9);
	atomicDec(u + 4, 9);
	atomicAdd(l, 1ull << 33);
	atomicMax(l + 1, (unsigned long long)t << 40);
	atomicAdd(f, 0.5f);
	atomicAdd(d, 0.25);
}

extern "C" __global__ void warp_ops(unsigned *out)
{
	unsigned t = threadIdx.x, lane = t & 31, *o = out + 8 * t;

	o[0] = __ballot_sync(~0u, lane % 3 == 0);
	o[1] = __all_sync(~0u, lane < 32) + 2 * __any_sync(~0u, lane == 40);
	o[2] = __shfl_up_sync(~0u, t, 3);
	o[3] = __shfl_xor_sync(~0u, t, 5, 8);
	o[4] = __shfl_sync(~0u, t, 9);
	o[5] = __match_any_sync(~0u, lane / 4);
	o[6] = __syncthreads_count(lane == 1);
	o[7] = 0;
	if (lane < 8)
		o[7] = __shfl_down_sync(0xff, t, 1);
}

static __device__ __noinline__ int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

struct pair {
	long long a;
	int b;
};

static __device__ __noinline__ struct pair swap(struct pair p, const int *add)
{
	struct pair r = {p.b + add[1], (int)p.a + add[0]};

	return r;
}

extern "C" __global__ void calls(int *out, struct pair by_value)
{
	int local[4] = {1, 2, 3, (int)threadIdx.x};
	struct pair p = {(long long)threadIdx.x, by_value.b};

	p = swap(p, local + (threadIdx.x & 1));
	out[2 * threadIdx.x] = fibonacci(threadIdx.x & 15);
	out[2 * threadIdx.x + 1] = (int)p.a * 1000 + p.b + (int)by_value.a + local[threadIdx.x & 3];
}

__device__ int table[4] = {10, 20, 30};
__device__ int *into_table = table + 1;
__constant__ short weights[4] = {1, -2, 3, -4};

extern "C" __global__ void variables(int *out)
{
	out[threadIdx.x] = into_table[threadIdx.x & 1] * weights[threadIdx.x & 3];
	if (threadIdx.x == 0)
		table[3] = 77;
}

extern "C" __global__ void wild_store(int *p, int offset)
{
	p[offset] = 1;
}

extern "C" __global__ void wild_shared(int *p)
{
	extern __shared__ int words[];

	words[*p] = 1;
}

extern "C" __global__ void stops(int how)
{
	if (how == 1)
		asm volatile("trap;");
	if (how == 2)
		assert(!"told to");
	if (how == 3)
		asm volatile("exit;");
	while (how == 4)
		asm volatile("");
	if (how == 5 && threadIdx.x)
		asm volatile("bar.sync 1, 64;");
}

extern "C" __global__ void __launch_bounds__(128, 2) bounded(unsigned *out)
{
	unsigned sm;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	out[blockIdx.x] = sm;
}
