// Cooperative groups and warp intrinsics. nvcc -ptx -std=c++17 -arch=sm_90 -o groups.ptx
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

// Sums of groups of eight lanes, and of the block by tiles of 32.
extern "C" __global__ void tile_sums(const int *in, int *eights, int *total)
{
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<8> eight = cg::tiled_partition<8>(block);
	cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
	int v = in[block.thread_rank()], sum = v;

	for (int step = eight.size() / 2; step; step /= 2)
		sum += eight.shfl_xor(sum, step);
	if (!eight.thread_rank())
		eights[block.thread_rank() / 8] = sum;
	sum = cg::reduce(warp, v, cg::plus<int>());
	if (!warp.thread_rank())
		atomicAdd(total, sum);
	block.sync();
}

extern "C" __global__ void tile_scan(const float *in, float *out, unsigned *largest)
{
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);

	out[block.thread_rank()] =
		cg::inclusive_scan(tile, in[block.thread_rank()], cg::plus<float>());
	largest[block.thread_rank()] =
		cg::reduce(tile, (unsigned)in[block.thread_rank()], cg::greater<unsigned>());
}

// Filters what is positive: one atomic for each group of lanes that come together.
extern "C" __global__ void compact(const int *in, int *out, unsigned *count, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n && in[i] > 0) {
		cg::coalesced_group active = cg::coalesced_threads();
		unsigned at;

		if (!active.thread_rank())
			at = atomicAdd(count, active.size());
		out[active.shfl(at, 0) + active.thread_rank()] = in[i];
	}
}

// Lanes with equal keys find each other; the leader counts them.
extern "C" __global__ void count_keys(const int *keys, unsigned *counts)
{
	int key = keys[threadIdx.x];
	unsigned same = __match_any_sync(~0u, key), all;
	int is_same;

	if (__ffs(same) - 1 == (threadIdx.x & 31))
		atomicAdd(&counts[key], __popc(same));
	all = __match_all_sync(~0u, (long long)key, &is_same);
	if (is_same && !(threadIdx.x & 31))
		counts[31] += __popc(all);
}

extern "C" __global__ void warp_reductions(const int *in, int *out)
{
	int v = in[threadIdx.x];
	unsigned u = (unsigned)v, mask = threadIdx.x & 16 ? 0xffff0000u : 0xffffu;

	out += 12 * threadIdx.x;
	out[0] = __reduce_add_sync(mask, v);
	out[1] = __reduce_min_sync(mask, v);
	out[2] = __reduce_max_sync(mask, v);
	out[3] = (int)__reduce_min_sync(mask, u);
	out[4] = (int)__reduce_max_sync(mask, u);
	out[5] = (int)__reduce_and_sync(mask, u);
	out[6] = (int)__reduce_or_sync(mask, u);
	out[7] = (int)__reduce_xor_sync(mask, u);
	out[8] = __all_sync(mask, v > 10);
	out[9] = __any_sync(mask, v > 10);
	out[10] = (int)__ballot_sync(mask, v > 10);
	out[11] = __shfl_sync(mask, v, 3, 8);
}

// The three reductions that a barrier makes.
extern "C" __global__ void barrier_reductions(const int *in, int *out)
{
	int v = in[threadIdx.x];

	out += 3 * threadIdx.x;
	out[0] = __syncthreads_count(v & 1);
	out[1] = __syncthreads_and(v >= 0);
	out[2] = __syncthreads_or(v == 77);
}

// Tiles of several warps meet and sum in the system's shared memory.
extern "C" __global__ void wide_tiles(const int *in, int *sums)
{
	__shared__ cg::block_tile_memory<256> memory;
	cg::thread_block block = cg::this_thread_block(memory);
	cg::thread_block_tile<64> tile = cg::tiled_partition<64>(block);
	int sum = cg::reduce(tile, in[block.thread_rank()], cg::plus<int>());

	tile.sync();
	if (!tile.thread_rank())
		sums[block.thread_rank() / 64] = sum + tile.meta_group_size();
}

// The grid meets twice; what one block wrote, the next reads.
extern "C" __global__ void grid_rounds(unsigned *cells, int rounds)
{
	cg::grid_group grid = cg::this_grid();
	unsigned at = grid.thread_rank(), n = grid.size();

	for (int k = 0; k < rounds; k++) {
		unsigned v = cells[(at + blockDim.x) % n];

		grid.sync();
		cells[at] = v + 1;
		grid.sync();
	}
}
