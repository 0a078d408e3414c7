/* The backend plain, on a driver of the test's own. */
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "preload/base/backend.h"
#include "preload/driver/real.h"

#define BYTES (4u << 20)

static uint64_t demanded_at_free;

static CUresult give(CUdeviceptr *ret, size_t bytes)
{
	(void)bytes;
	*ret = 0x10000;
	return CUDA_SUCCESS;
}

static CUresult take_back(CUdeviceptr address)
{
	struct td_memory_stats stats;

	(void)address;
	td_backend_plain.stats(0, &stats);
	demanded_at_free = stats.demanded_bytes;
	return CUDA_SUCCESS;
}

/*
 * Memory that is reported as freed may be another process's at once; both together would exceed
 * their job's limit.
 */
TEST(what_is_freed_counts_until_the_driver_has_it)
{
	struct td_memory_stats stats;
	uint64_t address;

	td_real.cuMemAlloc_v2 = give;
	td_real.cuMemFree_v2 = take_back;
	CHECK_EQ(td_backend_plain.alloc(0, BYTES, &address), CUDA_SUCCESS);
	CHECK_EQ(td_backend_plain.free(address), CUDA_SUCCESS);
	CHECK_EQ(demanded_at_free, BYTES);
	td_backend_plain.stats(0, &stats);
	CHECK_EQ(stats.demanded_bytes, 0);
	CHECK_EQ(stats.resident_bytes, 0);
	CHECK_EQ(td_backend_plain.free(address), TD_BACKEND_NOT_MINE);
}

/* The addresses are the parent's, and the child has none of its memory. */
TEST(the_child_of_a_fork_has_nothing)
{
	struct td_memory_stats stats;
	uint64_t address;
	int status;
	pid_t child;

	td_real.cuMemAlloc_v2 = give;
	td_real.cuMemFree_v2 = take_back;
	CHECK_EQ(td_backend_plain.alloc(0, BYTES, &address), CUDA_SUCCESS);
	child = fork();
	if (!child) {
		td_backend_plain.forked();
		td_backend_plain.stats(0, &stats);
		_exit(stats.demanded_bytes ||
			td_backend_plain.free(address) != TD_BACKEND_NOT_MINE);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(td_backend_plain.free(address), CUDA_SUCCESS);
}
