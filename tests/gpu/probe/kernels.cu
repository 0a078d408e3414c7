// Kernels of the probes. Their PTX is committed beside this file, made by
//   nvcc -arch=compute_75 -ptx -o kernels.ptx kernels.cu
// and loaded by the driver, so that no toolkit is needed where the probes run.

__device__ unsigned long long now_ns()
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

extern "C" __global__ void nothing()
{
}

// Keeps every thread busy for that long.
extern "C" __global__ void spin(unsigned long long ns)
{
	unsigned long long begin = now_ns();

	while (now_ns() - begin < ns)
		;
}

// Until the word is not 0, or a time is over.
extern "C" __global__ void hold(volatile unsigned *word, unsigned long long most_ns)
{
	unsigned long long begin = now_ns();

	while (!*word && now_ns() - begin < most_ns)
		;
}

extern "C" __global__ void poke(unsigned *word)
{
	*word = 7;
}

// One thread records when it was running: pairs of first and last moment, split where it lost the
// GPU for more than gap_ns.
extern "C" __global__ void watch(
	unsigned long long *pairs, unsigned most, unsigned long long ns, unsigned long long gap_ns)
{
	unsigned long long begin = now_ns(), last = begin, t = begin;
	unsigned n = 0;

	if (threadIdx.x || blockIdx.x) {
		while (now_ns() - begin < ns)
			;
		return;
	}
	pairs[0] = begin;
	while (t - begin < ns && n + 1 < most) {
		t = now_ns();
		if (t - last > gap_ns) {
			pairs[2 * n + 1] = last;
			n++;
			pairs[2 * n] = t;
		}
		last = t;
	}
	pairs[2 * n + 1] = last;
	if (n + 1 < most)
		pairs[2 * n + 2] = 0;
}

extern "C" __global__ void read_all(const uint4 *from, unsigned long long count, unsigned *sink)
{
	unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
	unsigned sum = 0;

	for (; i < count; i += (unsigned long long)gridDim.x * blockDim.x)
		sum += from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
	if (sum == 0x12345678)
		*sink = sum;
}

extern "C" __global__ void write_all(uint4 *to, unsigned long long count)
{
	unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;

	for (; i < count; i += (unsigned long long)gridDim.x * blockDim.x)
		to[i] = make_uint4(1, 2, 3, 4);
}

// Marks the multiprocessors that blocks ran on.
extern "C" __global__ void which_sm(unsigned *marks, unsigned most, unsigned long long ns)
{
	unsigned long long begin = now_ns();
	unsigned sm;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	if (!threadIdx.x && sm < most)
		atomicAdd(&marks[sm], 1);
	while (now_ns() - begin < ns)
		;
}
