/*
 * A kernel that keeps SMs busy for a time: one for each block, as a block is launched with more
 * shared memory than two of them find on an SM. occupy.ptx beside it is made by:
 * nvcc -ptx -arch=compute_75 -o occupy.ptx occupy.cu
 */
extern "C" __global__ void occupy(unsigned pieces)
{
	for (unsigned i = 0; i < pieces; i++)
		__nanosleep(100000);
}
