// Barriers in shared memory and copies that report to them.
// nvcc -ptx -std=c++17 -arch=sm_90 -o async.ptx
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/ptx>

#pragma nv_diag_suppress static_var_with_dynamic_init // the constructor does nothing; init() does

namespace cg = cooperative_groups;
typedef cuda::barrier<cuda::thread_scope_block> barrier;

// Each round reverses the block's cells, which every thread must have read before any writes.
extern "C" __global__ void rounds(int *cells, int n)
{
	__shared__ barrier bar;
	int t = threadIdx.x;

	if (!t)
		init(&bar, blockDim.x);
	__syncthreads();
	for (int k = 0; k < n; k++) {
		int v = cells[blockDim.x - 1 - t];

		bar.arrive_and_wait();
		cells[t] = v + 1;
		barrier::arrival_token token = bar.arrive();
		bar.wait(std::move(token));
	}
}

// Warp 0 produces, the others consume; each counts on the other by parity.
extern "C" __global__ void hand_over_parity(const int *in, int *out, int n)
{
	__shared__ barrier full, empty;
	__shared__ int cell;
	int consumers = blockDim.x - 32;

	if (!threadIdx.x) {
		init(&full, 1);
		init(&empty, consumers);
	}
	__syncthreads();
	for (int k = 0; k < n; k++) {
		if (!threadIdx.x) {
			if (k)
				empty.wait_parity((k - 1) & 1);
			cell = in[k];
			(void)full.arrive();
		} else if (threadIdx.x >= 32) {
			full.wait_parity(k & 1);
			out[k * consumers + threadIdx.x - 32] = cell;
			(void)empty.arrive();
		}
	}
}

// The whole block copies through the bulk engine, there and back.
extern "C" __global__ void bulk(const int *in, int *out)
{
	__shared__ alignas(128) int tile[256];
	__shared__ uint64_t bar;
	uint64_t token;

	if (!threadIdx.x) {
		cuda::ptx::mbarrier_init(&bar, blockDim.x);
		cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
	}
	__syncthreads();
	if (!threadIdx.x) {
		cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, tile,
			in + 256 * blockIdx.x, sizeof(tile), &bar);
		token = cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release,
			cuda::ptx::scope_cta, cuda::ptx::space_shared, &bar, sizeof(tile));
	} else {
		token = cuda::ptx::mbarrier_arrive(&bar);
	}
	while (!cuda::ptx::mbarrier_try_wait(&bar, token))
		;
	for (int n = threadIdx.x; n < 256; n += blockDim.x)
		tile[n] = 2 * tile[n] + 1;
	cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
	__syncthreads();
	if (!threadIdx.x) {
		cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared,
			out + 256 * blockIdx.x, tile, sizeof(tile));
		cuda::ptx::cp_async_bulk_commit_group();
		cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
	}
}

extern "C" __global__ void group_copy(const double *in, double *out)
{
	__shared__ double tile[96];
	cg::thread_block block = cg::this_thread_block();

	cg::memcpy_async(block, tile, in + 96 * blockIdx.x, sizeof(tile));
	cg::wait(block);
	out[96 * blockIdx.x + threadIdx.x] = tile[95 - threadIdx.x];
}
