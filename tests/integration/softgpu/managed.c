/*
 * Managed memory: advice reads back the same, pages are prefetched and discarded, attachments keep
 * the rules.
 */
#define ALL_CALLS
#include "cuda.h"

#include "softgpu/driver/memory/managed_abi.h"

#define BYTES (1u << 20)

static CUdeviceptr memory;
static CUstream stream;

static const CUmemLocation gpu = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
			   host = {CU_MEM_LOCATION_TYPE_HOST, 0};

static void start(void)
{
	begin();
	OK(cuMemAllocManaged(&memory, BYTES, CU_MEM_ATTACH_GLOBAL));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static int told(int attribute, size_t bytes)
{
	int value = -77;

	OK(cuMemRangeGetAttribute(&value, sizeof(value), attribute, memory, bytes));
	return value;
}

TEST(advice_is_told_again_where_all_pages_have_it)
{
	int by[3], value;
	void *out[] = {&value, by};
	size_t sizes[] = {4, sizeof(by)};
	int which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};

	start();
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, BYTES), 0);
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, BYTES), -2);
	OK(cuMemAdvise_v2(memory, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, host));
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 4096), 1);
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, BYTES), 0);
	OK(cuMemAdvise(memory, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, BYTES), 0);
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, BYTES),
		CU_MEM_LOCATION_TYPE_DEVICE);
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, BYTES), 0);
	OK(cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, BYTES), -2);
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 4096), CU_DEVICE_CPU);
	OK(cuMemAdvise(memory, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
	OK(cuMemAdvise(memory, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
	OK(cuMemRangeGetAttributes(out, sizes, which, 2, memory, BYTES));
	CHECK(by[0] == CU_DEVICE_CPU && by[1] == 0 && by[2] == -2);
	OK(cuMemAdvise(memory, BYTES, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 0));
	OK(cuMemRangeGetAttributes(out, sizes, which, 2, memory, BYTES));
	CHECK_EQ(by[1], -2);
	CHECK_EQ(cuMemAdvise(memory, BYTES, 9, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAdvise(memory, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, 7),
		CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQ(cuMemAdvise(memory, BYTES + 1, CU_MEM_ADVISE_SET_ACCESSED_BY, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(
		cuMemAdvise(memory, 0, CU_MEM_ADVISE_SET_ACCESSED_BY, 0), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(prefetches_are_in_stream_order_and_remembered)
{
	CUdeviceptr both[2];
	size_t sizes[2] = {65536, 65536}, first[1] = {0};
	CUmemLocation place[1] = {gpu};

	start();
	OK(cuMemPrefetchAsync(memory, BYTES, 0, stream));
	OK(cuMemPrefetchAsync_ptsz(memory, BYTES, CU_DEVICE_CPU, NULL));
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, BYTES), CU_DEVICE_CPU);
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, BYTES),
		CU_MEM_LOCATION_TYPE_HOST);
	OK(cuMemPrefetchAsync_v2(memory, BYTES, gpu, 0, stream));
	OK(cuMemPrefetchAsync_v2_ptsz(memory, BYTES, gpu, 0, NULL));
	CHECK_EQ(told(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, BYTES), 0);
	both[0] = memory;
	both[1] = memory + 65536;
	OK(cuMemPrefetchBatchAsync(both, sizes, 2, place, first, 1, 0, stream));
	OK(cuMemPrefetchBatchAsync_ptsz(both, sizes, 2, place, first, 1, 0, NULL));
	OK(cuCtxSynchronize());
	CHECK_EQ(cuMemPrefetchBatchAsync(both, sizes, 2, place, first, 1, 0, NULL),
		CUDA_ERROR_INVALID_VALUE); /* the legacy stream */
	first[0] = 1;
	CHECK_EQ(cuMemPrefetchBatchAsync(both, sizes, 2, place, first, 1, 0, stream),
		CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(what_is_discarded_is_not_found_again)
{
	CUdeviceptr one[1];
	size_t size[1] = {4096}, first[1] = {0};
	CUmemLocation place[1] = {gpu};
	unsigned *words;

	start();
	one[0] = memory;
	words = (unsigned *)memory;
	words[0] = 42;
	words[1024] = 43;
	OK(cuMemDiscardBatchAsync(one, size, 1, 0, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] != 42);
	CHECK_EQ(words[1024], 43);
	words[0] = 42;
	OK(cuMemDiscardBatchAsync_ptsz(one, size, 1, 0, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK(words[0] != 42);
	words[0] = 42;
	OK(cuMemDiscardAndPrefetchBatchAsync(one, size, 1, place, first, 1, 0, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] != 42);
	OK(cuMemDiscardAndPrefetchBatchAsync_ptsz(one, size, 1, place, first, 1, 0, NULL));
	OK(cuCtxSynchronize());
	end();
}

TEST(attachments_keep_their_rules)
{
	CUdeviceptr plain;

	start();
	OK(cuMemAlloc_v2(&plain, 4096));
	OK(cuStreamAttachMemAsync(stream, memory, 0, CU_MEM_ATTACH_SINGLE));
	OK(cuStreamAttachMemAsync(stream, memory, BYTES, CU_MEM_ATTACH_GLOBAL));
	OK(cuStreamAttachMemAsync_ptsz(NULL, memory, 0, CU_MEM_ATTACH_SINGLE));
	CHECK_EQ(cuStreamAttachMemAsync(NULL, memory, 0, CU_MEM_ATTACH_SINGLE),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuStreamAttachMemAsync(stream, memory, 4096, CU_MEM_ATTACH_HOST),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuStreamAttachMemAsync(stream, plain, 0, CU_MEM_ATTACH_HOST),
		CUDA_ERROR_INVALID_VALUE);
	end();
}
