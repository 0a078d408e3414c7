/*
 * The kernels of the training example. This command makes train.ptx beside it:
 * nvcc -ptx -arch=compute_75 -o train.ptx train.cu
 */

/* One word in each line of memory changes, so that every page is used at every step. */
extern "C" __global__ void touch(
	unsigned *words, unsigned long long lines, unsigned line_words, unsigned add)
{
	unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;

	if (i < lines)
		words[i * line_words] += add;
}

/* Computes for so long, by the GPU's clock. */
extern "C" __global__ void compute(unsigned long long ns)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do {
		__nanosleep(100000);
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - start < ns);
}
