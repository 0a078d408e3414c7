/*
 * A program that is moved to other GPUs while it runs, and checks that nothing is different: every
 * word of its memory, the order of its work, and all that it may ask about its own objects. For
 * migrate.py.
 *
 *   migrate_test SEED THREADS PROGRESS [BLOCKED]   under `softgpu run -- tandem run`
 *
 * It goes on until its standard input ends, and counts its turns in the file PROGRESS. BLOCKED: it
 * has something that cannot be moved: "pool", "managed", "graph", "array", "variable", "two",
 * "vmm" or "pinned". "cooperative": its launches fill all SMs that it sees. "churn": other threads
 * make such things and end them again, so that it can be moved at some moments. "late": at its end,
 * wherever it is then, it makes memory for its device and asks about it. Exit status 0: all was
 * right; 3: a wrong word; 4: a wrong answer; 5: a call failed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "migrate_test.h"

#define BLOCKS  6u
#define STRIDE  1024u /* words from one that the kernel changes to the next */
#define THREADS 4u

struct progress {
	_Atomic uint64_t turns, words;
};

struct block {
	CUdeviceptr address;
	uint32_t words, value, factor, term;
};

struct lane {
	pthread_t id;
	uint64_t random;
	CUstream stream, second;
	CUevent first, last;
	CUmodule module;
	CUfunction affine;
	uint32_t *staging;
	struct block blocks[BLOCKS];
	_Atomic unsigned called;
};

static struct progress *progress;
CUcontext context;
CUdevice device;
static unsigned long long context_id;
static char uuid[16];
static _Atomic bool over;
static bool is_cooperative;

/* affine(p, n, m, c): word i * STRIDE of n becomes m * word + c. */
const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry affine(.param .u64 p, .param .u32 n, .param .u32 m, .param .u32 c)\n{\n"
	".reg .u64 %a<3>;\n.reg .u32 %r<8>;\n.reg .pred %q;\n"
	"ld.param.u64 %a0, [p];\nld.param.u32 %r0, [n];\nld.param.u32 %r1, [m];\n"
	"ld.param.u32 %r2, [c];\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
	"mov.u32 %r5, %tid.x;\nmad.lo.u32 %r6, %r3, %r4, %r5;\nsetp.ge.u32 %q, %r6, %r0;\n"
	"@%q bra DONE;\nmul.wide.u32 %a1, %r6, 4096;\nadd.u64 %a2, %a0, %a1;\n"
	"ld.global.u32 %r7, [%a2];\nmad.lo.u32 %r7, %r7, %r1, %r2;\nst.global.u32 [%a2], %r7;\n"
	"DONE:\nret;\n}\n";

static const char variable_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .global .u32 kept[16];\n"
				   ".visible .entry none()\n{\nret;\n}\n";

void must_at(CUresult r, const char *call, int line)
{
	if (!r)
		return;
	fprintf(stderr, "migrate_test: line %d: %s: error %d\n", line, call, r);
	_exit(5);
}

void is_at(bool so, const char *what, int line)
{
	if (so)
		return;
	fprintf(stderr, "migrate_test: line %d: not so: %s\n", line, what);
	_exit(4);
}

static uint32_t next(struct lane *lane)
{
	uint64_t x = lane->random += 0x9e3779b97f4a7c15ull; /* splitmix64 */

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((x ^ x >> 31) >> 32);
}

static uint32_t below(struct lane *lane, uint32_t n)
{
	return (uint32_t)((uint64_t)next(lane) * n >> 32);
}

static uint32_t word(const struct block *b, uint32_t i)
{
	uint32_t w = (b->value ^ i) * 0x9e3779b1u;

	w ^= w >> 15;
	return i % STRIDE ? w : w * b->factor + b->term;
}

static void verify(struct lane *lane, const struct block *b)
{
	MUST(cuMemcpyDtoHAsync_v2(lane->staging, b->address, (size_t)b->words * 4, lane->stream));
	MUST(cuStreamSynchronize(lane->stream));
	for (uint32_t i = 0; i < b->words; i++) {
		if (lane->staging[i] == word(b, i))
			continue;
		fprintf(stderr, "migrate_test: word %u of %u at %#llx is %#x, expected %#x\n", i,
			b->words, b->address, lane->staging[i], word(b, i));
		_exit(3);
	}
	atomic_fetch_add(&progress->words, b->words);
}

static void upload(struct lane *lane, struct block *b)
{
	b->value = next(lane);
	b->factor = 1;
	b->term = 0;
	for (uint32_t i = 0; i < b->words; i++)
		lane->staging[i] = word(b, i);
	MUST(cuMemcpyHtoDAsync_v2(b->address, lane->staging, (size_t)b->words * 4, lane->stream));
	MUST(cuStreamSynchronize(lane->stream));
}

static void allocate(struct lane *lane, struct block *b)
{
	size_t bytes =
		below(lane, 2) ? 4 + below(lane, 16 * KIB) : 256 * KIB + below(lane, 1024 * KIB);

	MUST(cuMemAlloc_v2(&b->address, bytes));
	b->words = (uint32_t)(bytes / 4);
	upload(lane, b);
}

/* Launches a cooperative kernel of as many blocks as the GPU holds at once. It does nothing. */
static void fill_gpu(struct lane *lane, const struct block *b)
{
	uint32_t n = 0, m = 1, c = 0;
	CUdeviceptr address = b->address;
	void *params[] = {&address, &n, &m, &c};
	int sms, each;

	MUST(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, lane->affine, 64, 0));
	MUST(cuLaunchCooperativeKernel(
		lane->affine, (unsigned)(sms * each), 1, 1, 64, 1, 1, 0, lane->stream, params));
}

/* The order of kernels shows: multiplications and additions do not commute. */
static void compute(struct lane *lane, struct block *b)
{
	uint32_t n = (b->words + STRIDE - 1) / STRIDE;

	for (uint32_t k = 1 + below(lane, 6); k; k--) {
		uint32_t m = next(lane) | 1, c = next(lane);
		void *params[] = {&b->address, &n, &m, &c};
		CUlaunchConfig config = {(n + 63) / 64, 1, 1, 64, 1, 1, 0, lane->stream, NULL, 0};

		if (below(lane, 2))
			MUST(cuLaunchKernelEx(&config, lane->affine, params, NULL));
		else
			MUST(cuLaunchKernel(lane->affine, (n + 63) / 64, 1, 1, 64, 1, 1, 0,
				lane->stream, params, NULL));
		b->factor *= m;
		b->term = b->term * m + c;
	}
}

/* A stream reads behind an event what another one has made. */
static void cross_streams(struct lane *lane, struct block *to, const struct block *from)
{
	if (to == from || !from->address || to->words > from->words)
		return;
	MUST(cuEventRecord(lane->first, lane->stream));
	MUST(cuStreamWaitEvent(lane->second, lane->first, 0));
	MUST(cuMemcpyDtoDAsync_v2(to->address, from->address, (size_t)to->words * 4, lane->second));
	MUST(cuEventRecord(lane->last, lane->second));
	MUST(cuStreamWaitEvent(lane->stream, lane->last, 0));
	to->value = from->value;
	to->factor = from->factor;
	to->term = from->term;
}

static void on_stream(CUstream stream, CUresult status, void *arg)
{
	struct lane *lane = arg;

	if (status || stream != lane->stream)
		_exit(4);
	atomic_fetch_add(&lane->called, 1);
}

static void times(struct lane *lane)
{
	unsigned before = atomic_load(&lane->called);
	float ms = -1;

	MUST(cuEventRecord(lane->first, lane->stream));
	MUST(cuStreamAddCallback(lane->stream, on_stream, lane, 0));
	usleep(below(lane, 3000));
	MUST(cuEventRecord(lane->last, lane->stream));
	MUST(cuEventSynchronize(lane->last));
	MUST(cuEventQuery(lane->first));
	MUST(cuEventElapsedTime(&ms, lane->first, lane->last));
	IS(ms >= 0 && ms < 60000);
	MUST(cuStreamSynchronize(lane->stream));
	IS(atomic_load(&lane->called) == before + 1);
}

/* The answers about the program's own objects are as they were. */
static void ask(struct lane *lane, const struct block *b)
{
	unsigned long long id = 0, stream_id = 0, again = 0;
	CUcontext now = NULL, of_stream = NULL, of_memory = NULL, popped = NULL;
	size_t free_bytes, total, bytes;
	CUdeviceptr base;
	CUmodule module;
	char here[16];
	CUdevice on = -1;
	int ordinal = -1, access = -1;
	unsigned flags;

	MUST(cuCtxGetCurrent(&now));
	IS(now == context);
	MUST(cuCtxGetDevice(&on));
	IS(on == device);
	MUST(cuCtxGetId(NULL, &id));
	IS(id == context_id);
	MUST(cuCtxGetId(context, &id));
	IS(id == context_id);
	MUST(cuStreamGetCtx(lane->stream, &of_stream));
	IS(of_stream == context);
	MUST(cuStreamGetId(lane->stream, &stream_id));
	MUST(cuStreamGetFlags(lane->stream, &flags));
	IS(flags == CU_STREAM_NON_BLOCKING);
	MUST(cuStreamGetId(lane->stream, &again));
	IS(stream_id == again);
	MUST(cuFuncGetModule(&module, lane->affine));
	IS(module == lane->module);
	MUST(cuDeviceGetUuid_v2((CUuuid *)here, on));
	IS(!memcmp(here, uuid, sizeof(uuid)));
	MUST(cuMemGetInfo_v2(&free_bytes, &total));
	IS(free_bytes <= total);
	MUST(cuMemGetAddressRange_v2(&base, &bytes, b->address));
	IS(base == b->address && bytes >= (size_t)b->words * 4);
	MUST(cuPointerGetAttribute(&of_memory, TD_POINTER_CONTEXT, b->address));
	IS(of_memory == context);
	MUST(cuPointerGetAttribute(&ordinal, TD_POINTER_DEVICE_ORDINAL, b->address));
	IS(ordinal == device);
	MUST(cuPointerGetAttribute(&access, TD_POINTER_ACCESS_FLAGS, b->address));
	IS(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	MUST(cuCtxPushCurrent_v2(context));
	MUST(cuCtxPopCurrent_v2(&popped));
	IS(popped == context);
}

/* Objects of whichever GPU it is on come and go. */
static void renew(struct lane *lane)
{
	CUevent event;

	MUST(cuStreamSynchronize(lane->second));
	MUST(cuStreamDestroy_v2(lane->second));
	MUST(cuStreamCreate(&lane->second, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
	MUST(cuEventDestroy_v2(lane->first));
	lane->first = event;
	if (below(lane, 4))
		return;
	MUST(cuStreamSynchronize(lane->stream));
	MUST(cuModuleUnload(lane->module));
	MUST(cuModuleLoadData(&lane->module, ptx));
	MUST(cuModuleGetFunction(&lane->affine, lane->module, "affine"));
}

static void turn(struct lane *lane)
{
	struct block *b = &lane->blocks[below(lane, BLOCKS)];

	if (!b->address) {
		allocate(lane, b);
		return;
	}
	switch (below(lane, 10)) {
	case 0:
		MUST(cuMemFree_v2(b->address));
		b->address = 0;
		return;
	case 1: upload(lane, b); break;
	case 2: cross_streams(lane, b, &lane->blocks[below(lane, BLOCKS)]); break;
	case 3: times(lane); break;
	case 4: ask(lane, b); break;
	case 5: renew(lane); break;
	default: compute(lane, b); break;
	}
	if (is_cooperative)
		fill_gpu(lane, b);
	if (!below(lane, 3))
		verify(lane, b);
	atomic_fetch_add(&progress->turns, 1);
}

static void *run(void *arg)
{
	struct lane *lane = arg;

	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&lane->second, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&lane->first, CU_EVENT_DEFAULT));
	MUST(cuEventCreate(&lane->last, CU_EVENT_DEFAULT));
	MUST(cuModuleLoadData(&lane->module, ptx));
	MUST(cuModuleGetFunction(&lane->affine, lane->module, "affine"));
	lane->staging = malloc(2048 * KIB);
	IS(lane->staging);
	while (!atomic_load(&over)) {
		turn(lane);
		if (!below(lane, 8))
			usleep(below(lane, 5000));
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		if (lane->blocks[i].address)
			verify(lane, &lane->blocks[i]);
	for (unsigned i = 0; i < BLOCKS; i++)
		if (lane->blocks[i].address)
			MUST(cuMemFree_v2(lane->blocks[i].address));
	MUST(cuStreamDestroy_v2(lane->stream));
	MUST(cuEventDestroy_v2(lane->last));
	free(lane->staging);
	return NULL;
}

static void make_graph(void)
{
	CUstream stream;
	void *graph;

	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cuStreamEndCapture(stream, &graph));
}

static void map_own(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	CUmemGenericAllocationHandle handle;

	MUST(cuMemCreate(&handle, 2 * KIB * KIB, &prop, 0));
}

/* Something that stays where it is. */
static void block(const char *what)
{
	const struct td_array2d array = {64, 64, 0x20, 1};
	CUdeviceptr address;
	CUmodule module;
	CUcontext other;
	void *made;

	if (!strcmp(what, "pool"))
		MUST(cuMemAllocAsync(&address, KIB, NULL));
	else if (!strcmp(what, "managed"))
		MUST(cuMemAllocManaged(&address, KIB, CU_MEM_ATTACH_GLOBAL));
	else if (!strcmp(what, "graph"))
		make_graph();
	else if (!strcmp(what, "array"))
		MUST(cuArrayCreate_v2(&made, &array));
	else if (!strcmp(what, "variable"))
		MUST(cuModuleLoadData(&module, variable_ptx));
	else if (!strcmp(what, "vmm"))
		map_own();
	else if (!strcmp(what, "pinned"))
		MUST(cuMemHostRegister_v2(aligned_alloc(4096, 4096), 4096, 0));
	else if (!strcmp(what, "cooperative"))
		is_cooperative = true;
	else if (!strcmp(what, "two"))
		MUST(cuCtxCreate_v2(&other, 0, 1));
	else
		IS(!*what);
	MUST(cuCtxSetCurrent(context));
}

/* Memory of a pool keeps its bytes while it is there. */
static void use_pool(struct lane *lane, CUstream stream)
{
	uint32_t value = next(lane), back[64];
	CUdeviceptr address;

	MUST(cuMemAllocAsync(&address, sizeof(back), stream));
	MUST(cuMemsetD32Async(address, value, 64, stream));
	MUST(cuStreamSynchronize(stream));
	usleep(below(lane, 500));
	/* Another GPU could not write there. */
	MUST(cuMemsetD32Async(address + 4, value, 63, stream));
	MUST(cuMemcpyDtoHAsync_v2(back, address, sizeof(back), stream));
	MUST(cuMemFreeAsync(address, stream));
	MUST(cuStreamSynchronize(stream));
	for (unsigned i = 0; i < 64; i++)
		if (back[i] != value)
			_exit(3);
}

/* Makes and ends things that cannot be moved, and things that have to get twins. */
static void *churn(void *arg)
{
	const struct td_array2d shape = {64, 64, 0x20, 1};
	struct lane *lane = arg;
	CUstream stream;
	CUmodule module;
	CUevent event;
	void *array;

	MUST(cuCtxSetCurrent(context));
	while (!atomic_load(&over)) {
		MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
		switch (below(lane, 4)) {
		case 0:
			MUST(cuArrayCreate_v2(&array, &shape));
			usleep(below(lane, 500));
			MUST(cuArrayDestroy(array));
			break;
		case 1: use_pool(lane, stream); break;
		case 2:
			MUST(cuModuleLoadData(&module, ptx));
			MUST(cuModuleUnload(module));
			break;
		default: break;
		}
		MUST(cuEventRecord(event, stream));
		MUST(cuStreamWaitEvent(stream, event, 0));
		MUST(cuEventSynchronize(event));
		MUST(cuEventDestroy_v2(event));
		MUST(cuStreamDestroy_v2(stream));
		usleep(below(lane, 4000));
	}
	return NULL;
}

static void map_progress(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	IS(fd >= 0 && !ftruncate(fd, 4096));
	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	IS(progress != MAP_FAILED);
	close(fd);
}

int main(int argc, char **argv)
{
	static struct lane lanes[THREADS];
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 0, churns;
	bool late;
	char c;

	if (argc < 4 || !count || count > THREADS) {
		fprintf(stderr, "usage: migrate_test SEED THREADS PROGRESS [BLOCKED]\n");
		return 2;
	}
	map_progress(argv[3]);
	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDevicePrimaryCtxRetain(&context, device));
	MUST(cuCtxSetCurrent(context));
	MUST(cuCtxGetId(context, &context_id));
	MUST(cuDeviceGetUuid_v2((CUuuid *)uuid, device));
	churns = argc > 4 && !strcmp(argv[4], "churn") ? THREADS - count : 0;
	late = argc > 4 && !strcmp(argv[4], "late");
	if (argc > 4 && !churns && !late)
		block(argv[4]);
	count += churns;
	for (unsigned i = 0; i < count; i++) {
		lanes[i].random = (strtoull(argv[1], NULL, 10) + i) * 0x9e3779b97f4a7c15ull;
		IS(!pthread_create(
			&lanes[i].id, NULL, i < count - churns ? run : churn, &lanes[i]));
	}
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	atomic_store(&over, true);
	for (unsigned i = 0; i < count; i++)
		pthread_join(lanes[i].id, NULL);
	if (late)
		make_late();
	name_context();
	MUST(cuDevicePrimaryCtxRelease_v2(device));
	return 0;
}
