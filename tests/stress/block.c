/* Allocating, filling, copying, computing on and checking blocks; see block.h. */
#include "block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"

#define KIB (1u << 10)
#define MIB (1u << 20)

#define BLOCK_BYTES_MAX (6 * MIB)

/* affine(p, n, m, c): word i * BLOCK_STRIDE of n becomes m * word + c. */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry affine(.param .u64 p, .param .u32 n, .param .u32 m, .param .u32 c)\n{\n"
	".reg .u64 %a<3>;\n.reg .u32 %r<8>;\n.reg .pred %q;\n"
	"ld.param.u64 %a0, [p];\nld.param.u32 %r0, [n];\nld.param.u32 %r1, [m];\n"
	"ld.param.u32 %r2, [c];\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
	"mov.u32 %r5, %tid.x;\nmad.lo.u32 %r6, %r3, %r4, %r5;\nsetp.ge.u32 %q, %r6, %r0;\n"
	"@%q bra DONE;\nmul.wide.u32 %a1, %r6, 4096;\nadd.u64 %a2, %a0, %a1;\n"
	"ld.global.u32 %r7, [%a2];\nmad.lo.u32 %r7, %r7, %r1, %r2;\nst.global.u32 [%a2], %r7;\n"
	"DONE:\nret;\n}\n";

_Static_assert(BLOCK_STRIDE * 4 == 4096, "the kernel's stride");

void must_at(CUresult r, const char *call, int line)
{
	if (!r)
		return;
	fprintf(stderr, "stress: pid %d line %d: %s: error %d\n", (int)getpid(), line, call, r);
	_exit(5);
}

static uint64_t next(struct lane *lane)
{
	uint64_t x = lane->random += 0x9e3779b97f4a7c15ull; /* splitmix64 */

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint32_t lane_below(struct lane *lane, uint32_t n)
{
	return (uint32_t)((next(lane) >> 32) * n >> 32);
}

uint32_t block_word(const struct block *b, uint32_t i)
{
	uint32_t word = b->value;

	if (b->hashed) {
		word = (word ^ i) * 0x9e3779b1u;
		word ^= word >> 15;
	}
	return i % BLOCK_STRIDE ? word : word * b->factor + b->term;
}

void block_fill(struct block *b, uint32_t value, bool hashed)
{
	b->hashed = hashed;
	b->value = value;
	b->factor = 1;
	b->term = 0;
}

void block_copy(struct block *b, const struct block *from)
{
	b->hashed = from->hashed;
	b->value = from->value;
	b->factor = from->factor;
	b->term = from->term;
}

void block_apply(struct block *b, uint32_t m, uint32_t c)
{
	b->factor *= m;
	b->term = b->term * m + c;
}

static void verify(struct lane *lane, const struct block *b)
{
	uint32_t wrong = 0, first = 0;

	memset(lane->staging, 0x5a, (size_t)b->words * 4);
	if (lane_below(lane, 2)) {
		MUST(cuMemcpyDtoHAsync_v2(
			lane->staging, b->address, (size_t)b->words * 4, lane->stream));
		MUST(cuStreamSynchronize(lane->stream));
	} else {
		MUST(cuStreamSynchronize(lane->stream));
		MUST(cuMemcpyDtoH_v2(lane->staging, b->address, (size_t)b->words * 4));
	}
	for (uint32_t i = 0; i < b->words; i++)
		if (lane->staging[i] != block_word(b, i) && !wrong++)
			first = i;
	lane->verified_bytes += (uint64_t)b->words * 4;
	if (!wrong)
		return;
	fprintf(stderr,
		"stress: pid %d: %u words of %u are wrong (kind %d, %zu bytes at %#llx): word %u "
		"is %#x, expected %#x\n",
		(int)getpid(), wrong, b->words, b->kind, b->bytes, b->address, first,
		lane->staging[first], block_word(b, first));
	_exit(3);
}

/* By the host's memory, by a fill on the device. */
static void upload(struct lane *lane, struct block *b)
{
	block_fill(b, (uint32_t)next(lane), true);
	for (uint32_t i = 0; i < b->words; i++)
		lane->staging[i] = block_word(b, i);
	if (lane_below(lane, 2)) {
		MUST(cuMemcpyHtoDAsync_v2(
			b->address, lane->staging, (size_t)b->words * 4, lane->stream));
		MUST(cuStreamSynchronize(lane->stream));
	} else {
		MUST(cuStreamSynchronize(lane->stream));
		MUST(cuMemcpyHtoD_v2(b->address, lane->staging, (size_t)b->words * 4));
	}
}

static void fill(struct lane *lane, struct block *b)
{
	block_fill(b, (uint32_t)next(lane), false);
	MUST(cuMemsetD32Async(b->address, b->value, b->words, lane->stream));
}

static void copy(struct lane *lane, struct block *to, const struct block *from)
{
	if (to == from || to->words > from->words)
		return;
	MUST(cuMemcpyDtoDAsync_v2(to->address, from->address, (size_t)to->words * 4, lane->stream));
	block_copy(to, from);
}

static void launch(struct lane *lane, const struct block *b, uint32_t m, uint32_t c)
{
	CUdeviceptr p = b->address;
	uint32_t n = (b->words + BLOCK_STRIDE - 1) / BLOCK_STRIDE;
	void *params[] = {&p, &n, &m, &c};
	CUlaunchConfig config = {(n + 63) / 64, 1, 1, 64, 1, 1, 0, lane->stream, NULL, 0};

	lane->launches++;
	if (lane_below(lane, 2))
		MUST(cuLaunchKernelEx(&config, lane->affine, params, NULL));
	else
		MUST(cuLaunchKernel(lane->affine, (n + 63) / 64, 1, 1, 64, 1, 1, 0, lane->stream,
			params, NULL));
}

static void compute(struct lane *lane, struct block *b)
{
	for (uint32_t k = 1 + lane_below(lane, 8); k; k--) {
		uint32_t m = (uint32_t)next(lane) | 1, c = (uint32_t)next(lane);

		launch(lane, b, m, c);
		block_apply(b, m, c);
	}
}

static int capture_mode(struct lane *lane)
{
	if (lane_below(lane, 2))
		return lane->is_alone ? CU_STREAM_CAPTURE_MODE_GLOBAL
				      : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
	return CU_STREAM_CAPTURE_MODE_RELAXED;
}

/* A fill or an upload's continuation, and some kernels, captured and launched several times. */
static void run_graph(struct lane *lane, struct block *b)
{
	uint32_t kernels = 1 + lane_below(lane, 4), times = 1 + lane_below(lane, 3);
	uint32_t m = (uint32_t)next(lane) | 1, c = (uint32_t)next(lane);
	bool begins_with_fill = lane_below(lane, 2);
	CUgraphExec exec;
	CUgraph graph;

	MUST(cuStreamBeginCapture_v2(lane->stream, capture_mode(lane)));
	if (begins_with_fill)
		fill(lane, b);
	for (uint32_t k = 0; k < kernels; k++)
		launch(lane, b, m, c);
	MUST(cuStreamEndCapture(lane->stream, &graph));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t t = 0; t < times; t++) {
		MUST(cuGraphLaunch(exec, lane->stream));
		if (begins_with_fill)
			block_fill(b, b->value, false);
		for (uint32_t k = 0; k < kernels; k++)
			block_apply(b, m, c);
	}
	MUST(cuStreamSynchronize(lane->stream));
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(graph));
}

static CUresult map_own(struct lane *lane, size_t bytes, CUdeviceptr *ret)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, lane->device}};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, lane->device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUresult r = cuMemCreate(&handle, bytes, &prop, 0);

	if (r)
		return r;
	MUST(cuMemAddressReserve(ret, bytes, 0, 0, 0));
	MUST(cuMemMap(*ret, bytes, 0, handle, 0));
	MUST(cuMemRelease(handle));
	MUST(cuMemSetAccess(*ret, bytes, &access, 1));
	return CUDA_SUCCESS;
}

static size_t random_bytes(struct lane *lane)
{
	switch (lane_below(lane, 4)) {
	case 0: return 4 + lane_below(lane, 4 * KIB);
	case 1: return 4 * KIB + lane_below(lane, 508 * KIB);
	default: return 512 * KIB + lane_below(lane, BLOCK_BYTES_MAX - 512 * KIB);
	}
}

static enum block_kind random_kind(struct lane *lane)
{
	uint32_t count = (uint32_t)strlen(lane->kinds);

	return (enum block_kind)(
		strchr(BLOCK_KINDS, lane->kinds[lane_below(lane, count)]) - BLOCK_KINDS);
}

static void allocate(struct lane *lane, struct block *b)
{
	size_t bytes = random_bytes(lane), pitch = 0;
	uint32_t rows = 1 + lane_below(lane, 16);
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	*b = (struct block){.kind = random_kind(lane)};
	switch (b->kind) {
	case BLOCK_PLAIN: r = cuMemAlloc_v2(&b->address, bytes); break;
	case BLOCK_PITCH:
		r = cuMemAllocPitch_v2(&b->address, &pitch, bytes / rows + 4, rows, 4);
		bytes = pitch * rows;
		break;
	case BLOCK_ASYNC: r = cuMemAllocAsync(&b->address, bytes, lane->stream); break;
	case BLOCK_OWN_VMM:
		bytes = (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
		r = map_own(lane, bytes, &b->address);
		break;
	case BLOCK_MANAGED: r = cuMemAllocManaged(&b->address, bytes, CU_MEM_ATTACH_GLOBAL); break;
	case BLOCK_GRAPH: r = block_of_graph(lane, bytes, &b->address); break;
	case BLOCK_LIBRARY: r = block_of_library(lane, bytes, b); break;
	case BLOCK_KIND_N: break;
	}
	if (r) {
		b->address = 0;
		if (r != CUDA_ERROR_OUT_OF_MEMORY)
			must_at(r, "an allocation", __LINE__ + b->kind * 1000);
		lane->refused++;
		return;
	}
	b->bytes = bytes;
	b->words = (uint32_t)((bytes < BLOCK_BYTES_MAX ? bytes : BLOCK_BYTES_MAX) / 4);
	fill(lane, b);
}

static void release(struct lane *lane, struct block *b)
{
	if (b->kind == BLOCK_ASYNC || (b->kind == BLOCK_GRAPH && lane_below(lane, 2))) {
		MUST(cuMemFreeAsync(b->address, lane->stream));
	} else if (b->kind == BLOCK_OWN_VMM) {
		MUST(cuStreamSynchronize(lane->stream));
		MUST(cuMemUnmap(b->address, b->bytes));
		MUST(cuMemAddressFree(b->address, b->bytes));
	} else if (b->kind == BLOCK_LIBRARY) {
		MUST(cuStreamSynchronize(lane->stream));
		MUST(cuLibraryUnload(b->library));
	} else {
		MUST(cuMemFree_v2(b->address)); /* what is in flight on it ends before */
	}
	b->address = 0;
}

static void ask(struct lane *lane)
{
	size_t free_bytes, total_bytes;

	(void)lane;
	MUST(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	if (free_bytes <= total_bytes)
		return;
	fprintf(stderr, "stress: %zu bytes of %zu are free\n", free_bytes, total_bytes);
	_exit(5);
}

void lane_turn(struct lane *lane)
{
	struct block *b = &lane->blocks[lane_below(lane, BLOCKS_MAX)];
	const struct block *from = &lane->blocks[lane_below(lane, BLOCKS_MAX)];

	if (!b->address) {
		allocate(lane, b);
		return;
	}
	switch (lane_below(lane, 10)) {
	case 0: release(lane, b); return;
	case 1: upload(lane, b); break;
	case 2: fill(lane, b); break;
	case 3:
		if (from->address)
			copy(lane, b, from);
		break;
	case 4:
		if (lane->can_capture)
			run_graph(lane, b);
		break;
	case 5: ask(lane); break;
	case 6: lane_build_graph(lane, b, from); break;
	default: compute(lane, b); break;
	}
	if (lane_below(lane, 3) == 0)
		verify(lane, b);
}

void lane_verify(struct lane *lane)
{
	for (uint32_t i = 0; i < BLOCKS_MAX; i++)
		if (lane->blocks[i].address)
			verify(lane, &lane->blocks[i]);
}

void lane_init(struct lane *lane, int device, const char *kinds, uint64_t seed)
{
	CUmodule module;

	*lane = (struct lane){.random = seed, .device = device, .kinds = kinds};
	lane->staging = malloc(BLOCK_BYTES_MAX);
	if (!lane->staging)
		must_at(CUDA_ERROR_OUT_OF_MEMORY, "malloc", __LINE__);
	MUST(cuModuleLoadData(&module, ptx));
	MUST(cuModuleGetFunction(&lane->affine, module, "affine"));
	switch (lane_below(lane, 4)) {
	case 0: lane->stream = CU_STREAM_LEGACY; break;
	case 1: lane->stream = CU_STREAM_PER_THREAD; break;
	case 2: MUST(cuStreamCreate(&lane->stream, CU_STREAM_DEFAULT)); break;
	default:
		/*
		 * The other streams wait for the legacy stream, which other threads use: they must
		 * not capture then.
		 */
		MUST(cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING));
		lane->can_capture = true;
	}
}

void lane_deinit(struct lane *lane)
{
	for (uint32_t i = 0; i < BLOCKS_MAX; i++)
		if (lane->blocks[i].address)
			release(lane, &lane->blocks[i]);
	MUST(cuStreamSynchronize(lane->stream));
	if (lane->stream != CU_STREAM_LEGACY && lane->stream != CU_STREAM_PER_THREAD)
		MUST(cuStreamDestroy_v2(lane->stream));
	free(lane->staging);
}
