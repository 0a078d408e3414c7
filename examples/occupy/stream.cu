/*
 * As occupy.cu, with traffic from DRAM: in each piece of time a block fetches so many bytes into
 * the L2 cache, of a memory that is larger than that. stream.ptx beside it is made by:
 * nvcc -ptx -arch=compute_90 -o stream.ptx stream.cu
 */
typedef unsigned long long u64;

extern "C" __global__ void stream(unsigned pieces, const char *memory, u64 size, unsigned bytes)
{
	for (unsigned i = 0; i < pieces; i++) {
		u64 at = ((u64)blockIdx.x * pieces + i) * bytes % size;

		if (bytes)
			asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
				memory + at),
				"r"(bytes));
		__nanosleep(100000);
	}
}
