// CUB's collectives of a block and of a warp. nvcc -ptx -std=c++17 -arch=sm_90 -o cub_block.ptx
#include <cub/cub.cuh>

extern "C" __global__ void block_reduce(const float *in, float *out)
{
	typedef cub::BlockReduce<float, 128> reduce;
	__shared__ typename reduce::TempStorage temp;
	float sum = reduce(temp).Sum(in[blockIdx.x * 128 + threadIdx.x]);

	if (!threadIdx.x)
		out[blockIdx.x] = sum;
}

extern "C" __global__ void block_scan(const int *in, int *out)
{
	typedef cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE> load;
	typedef cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_TRANSPOSE> store;
	typedef cub::BlockScan<int, 128> scan;
	__shared__ union {
		typename load::TempStorage load;
		typename store::TempStorage store;
		typename scan::TempStorage scan;
	} temp;
	int v[4];

	load(temp.load).Load(in + blockIdx.x * 512, v);
	__syncthreads();
	scan(temp.scan).ExclusiveSum(v, v);
	__syncthreads();
	store(temp.store).Store(out + blockIdx.x * 512, v);
}

extern "C" __global__ void block_sort(unsigned *keys, int *values)
{
	typedef cub::BlockRadixSort<unsigned, 64, 4, int> sort;
	__shared__ typename sort::TempStorage temp;
	unsigned k[4];
	int v[4];

	for (int n = 0; n < 4; n++) {
		k[n] = keys[4 * threadIdx.x + n];
		v[n] = values[4 * threadIdx.x + n];
	}
	sort(temp).Sort(k, v);
	for (int n = 0; n < 4; n++) {
		keys[4 * threadIdx.x + n] = k[n];
		values[4 * threadIdx.x + n] = v[n];
	}
}

struct less {
	__device__ bool operator()(double a, double b) const { return a < b; }
};

extern "C" __global__ void merge_sort(double *keys)
{
	typedef cub::BlockMergeSort<double, 64, 2> sort;
	__shared__ typename sort::TempStorage temp;
	double k[2] = {keys[2 * threadIdx.x], keys[2 * threadIdx.x + 1]};

	sort(temp).Sort(k, less());
	keys[2 * threadIdx.x] = k[0];
	keys[2 * threadIdx.x + 1] = k[1];
}

extern "C" __global__ void block_histogram(const unsigned char *in, unsigned *out)
{
	typedef cub::BlockHistogram<unsigned char, 128, 2, 256, cub::BLOCK_HISTO_SORT> histogram;
	__shared__ typename histogram::TempStorage temp;
	__shared__ unsigned bins[256];
	unsigned char v[2] = {in[2 * threadIdx.x], in[2 * threadIdx.x + 1]};

	histogram(temp).Histogram(v, bins);
	__syncthreads();
	for (int n = threadIdx.x; n < 256; n += 128)
		out[n] = bins[n];
}

extern "C" __global__ void warp_collectives(const int *in, int *sums, int *scans)
{
	typedef cub::WarpReduce<int, 16> reduce;
	typedef cub::WarpScan<int> scan;
	__shared__ typename reduce::TempStorage reduce_temp[4];
	__shared__ typename scan::TempStorage scan_temp[2];
	int v = in[threadIdx.x],
	    sum = reduce(reduce_temp[threadIdx.x / 16]).Reduce(v, cuda::maximum<>{});

	if (!(threadIdx.x & 15))
		sums[threadIdx.x / 16] = sum;
	scan(scan_temp[threadIdx.x / 32]).InclusiveSum(v, scans[threadIdx.x]);
}
