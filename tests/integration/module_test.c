/*
 * A program for modules.py, run under `softgpu run -- tandem run --mem`: module_test KIND BYTES.
 * For each line on stdin it loads images with a variable of that size until one is refused, then
 * one with little data, and prints how many there are in a line of JSON; then it unloads all of
 * them. "Little" before one of the first kinds gives the image with little data 0.8 of that size.
 *
 *   data         cuModuleLoadData
 *   file         cuModuleLoad
 *   library      cuLibraryLoadData, and its variable in the current context
 *   managed      cuModuleLoadData, of a variable in unified memory; "shared": cuLibraryLoadData
 *   packed       cuModuleLoadData, of a fatbin with only a compressed image; "packedshared": one
 *                whose variable is managed; "packedlibrary": cuLibraryLoadData of one
 *   decoy        the same, beside an image without variables that is not compressed
 *   later        the same, loaded before there is a context
 *   listed       the same, by its kernels
 *   asked        the same; its kernel is looked up before there is a context, and becomes a
 *                function in it
 *   launched     the same; its kernel is launched by its own handle
 *   captured     the same, into a graph
 *   packedlater  the same as `later`, of a compressed image
 *   node         the same; its kernel is a graph's node by its own handle; node1, anynode, anynode2
 *                by other calls
 *   setnode      the same; a node becomes one of its kernel; setnode1, setany, setexec, setexec1,
 *                setexecany by other calls
 *   occupancy    the same; the occupancy of its kernel is queried
 *   contexts     a library's variable in each of three contexts
 *   streams      a library's kernel is launched by its own handle in a stream of each
 *   nodes        a library's kernel is a node for each of them
 *   threads      threads use a library that does not fit beside 20 MiB at once, again and again:
 *                how many of them got it
 *   kept         a library, and the driver's answer to its unloading amid a capture; then as much
 *                memory as one more
 *   reset        once: a library, and the primary context reset; then its variable once more, and
 *                as much memory as one more
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/objects.h"
#include "cuda/signatures.h"

/* Every symbol, in the types of the generated signatures. */
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL

#define MOST    256
#define LATER   3
#define MANAGED ".attribute(.managed)"

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "module_test: %s: %d\n", what, (int)r);
	exit(1);
}

static const char *image_of(const char *attribute, size_t bytes)
{
	static char text[512];

	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n// .global .b8 no[1000000000];\n"
		".visible .global %s .align 4 .b32 words[%zu];\n.visible .entry f(.param .u64 .ptr "
		".global .align 4 p)\n{\nret;\n}\n",
		attribute, bytes / 4);
	return text;
}

static const char *image(size_t bytes)
{
	return image_of("", bytes);
}

static void put(unsigned char **at, uint64_t value, unsigned bytes)
{
	for (; bytes; bytes--, value >>= 8)
		*(*at)++ = (unsigned char)value;
}

/*
 * Writes the head of one image of a fatbin: PTX for a very old GPU. packed: its payload has that
 * length, and `unpacked` after unpacking.
 */
static void put_head(unsigned char **at, size_t bytes, unsigned sm, size_t packed, size_t unpacked)
{
	put(at, 1, 2); /* PTX */
	put(at, 1, 2);
	put(at, 64, 4); /* of this header */
	put(at, bytes, 8);
	put(at, packed, 8);
	put(at, 0, 4);
	put(at, sm, 4);
	put(at, 0, 8);
	put(at, packed ? 0x8000 : 0, 8); /* Zstandard */
	put(at, 0, 8);
	put(at, unpacked, 8);
}

/*
 * Makes a fatbin of PTX in a frame of Zstandard (RFC 8878) with one raw block; decoy: and of
 * uncompressed PTX for an older GPU.
 */
static const void *packed_image(const char *attribute, size_t bytes, bool decoy)
{
	static const char other[] = ".version 7.0\n.target sm_50\n.address_size 64\n     ";
	static unsigned char fatbin[1024];
	const char *text = image_of(attribute, bytes);
	size_t len = strlen(text), frame = 4 + 1 + 4 + 3 + len, padded = (frame + 7) / 8 * 8;
	unsigned char *at = fatbin;

	memset(fatbin, 0, sizeof(fatbin));
	put(&at, 0xba55ed50, 4);
	put(&at, 1, 2);
	put(&at, 16, 2);
	put(&at, 64 + padded + (decoy ? 64 + sizeof(other) : 0), 8);
	if (decoy) {
		put_head(&at, sizeof(other), 50, 0, 0);
		memcpy(at, other, sizeof(other));
		at += sizeof(other);
	}
	put_head(&at, padded, 70, frame, len);
	put(&at, 0xfd2fb528, 4);
	put(&at, 0xa0, 1); /* one segment, its length in 4 bytes */
	put(&at, len, 4);
	put(&at, len << 3 | 1, 3); /* the last block */
	memcpy(at, text, len);
	return fatbin;
}

static CUresult load_file(CUmodule *ret, size_t bytes)
{
	char path[] = "/tmp/tandem-module-XXXXXX";
	const char *text = image(bytes);
	int fd = mkstemp(path);
	CUresult r;

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		exit(1);
	close(fd);
	r = cuModuleLoad(ret, path);
	unlink(path);
	return r;
}

static CUresult load_shared(void **ret, size_t bytes)
{
	CUresult r = cuLibraryLoadData(ret, image_of(MANAGED, bytes), NULL, NULL, 0, NULL, NULL, 0);
	CUdeviceptr at;
	size_t size;

	if (!r)
		must(cuLibraryGetManaged(&at, &size, *ret, "words"), "its variable");
	return r;
}

static CUresult load_library(void **ret, const void *from)
{
	CUresult r = cuLibraryLoadData(ret, from, NULL, NULL, 0, NULL, NULL, 0);
	CUdeviceptr at;
	size_t size;

	if (!r)
		must(cuLibraryGetGlobal(&at, &size, *ret, "words"), "its variable");
	return r;
}

static const char *plain_kind(const char *kind)
{
	return strncmp(kind, "little", 6) ? kind : kind + 6;
}

static CUresult load(const char *kind, void **ret, size_t bytes)
{
	kind = plain_kind(kind);
	if (!strcmp(kind, "library"))
		return load_library(ret, image(bytes));
	if (!strcmp(kind, "packedlibrary"))
		return load_library(ret, packed_image("", bytes, false));
	if (!strcmp(kind, "shared"))
		return load_shared(ret, bytes);
	if (!strcmp(kind, "managed"))
		return cuModuleLoadData((CUmodule *)ret, image_of(MANAGED, bytes));
	if (!strcmp(kind, "packed") || !strcmp(kind, "decoy"))
		return cuModuleLoadData(
			(CUmodule *)ret, packed_image("", bytes, !strcmp(kind, "decoy")));
	if (!strcmp(kind, "packedshared"))
		return cuModuleLoadData((CUmodule *)ret, packed_image(MANAGED, bytes, false));
	return !strcmp(kind, "file") ? load_file((CUmodule *)ret, bytes)
				     : cuModuleLoadData((CUmodule *)ret, image(bytes));
}

static void unload(const char *kind, void *handle)
{
	const char *plain = plain_kind(kind);
	bool is_library = !strcmp(plain, "library") || !strcmp(plain, "shared") ||
			  !strcmp(plain, "packedlibrary");

	must(is_library ? cuLibraryUnload(handle) : cuModuleUnload((CUmodule)handle), "unload");
}

static void say(unsigned count, CUresult r)
{
	printf("{\"loaded\": %u, \"result\": %d}\n", count, (int)r);
	fflush(stdout);
}

static CUresult launch(CUfunction kernel, CUstream stream)
{
	CUdeviceptr p = 0;
	void *params[] = {&p};
	CUresult r = cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);

	return r || stream ? r : cuCtxSynchronize();
}

static CUresult capture(CUfunction kernel)
{
	CUstream stream;
	void *graph;
	CUresult r;

	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	must(cuStreamBeginCapture_v2(stream, 2), "cuStreamBeginCapture"); /* relaxed */
	r = launch(kernel, stream);
	must(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
	must(cuGraphDestroy(graph), "cuGraphDestroy");
	must(cuStreamDestroy_v2(stream), "cuStreamDestroy");
	return r;
}

/* The generic calls' struct around the same. */
static struct td_node_params any_node(const struct td_kernel_node *params)
{
	struct td_node_params any = {.type = TD_NODE_KERNEL};

	memcpy(&any.kernel, params, sizeof(*params));
	return any;
}

static struct td_kernel_node kernel_node(const void *function, const void *kernel)
{
	static CUdeviceptr p;
	static void *args[] = {&p};

	return (struct td_kernel_node){.function = function,
		.grid = {1, 1, 1},
		.block = {1, 1, 1},
		.params = args,
		.kernel = kernel};
}

static CUresult add_node(const char *kind, const void *kernel)
{
	struct td_kernel_node params = kernel_node(NULL, kernel), old = kernel_node(kernel, NULL);
	struct td_node_params any = any_node(&params);
	void *graph, *node;
	CUresult r;

	must(cuGraphCreate(&graph, 0), "cuGraphCreate");
	if (!strcmp(kind, "node1"))
		r = cuGraphAddKernelNode(&node, graph, NULL, 0, &old);
	else if (!strcmp(kind, "anynode"))
		r = cuGraphAddNode(&node, graph, NULL, 0, &any);
	else if (!strcmp(kind, "anynode2"))
		r = cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &any);
	else
		r = cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params);
	must(cuGraphDestroy(graph), "cuGraphDestroy");
	return r;
}

static CUresult set_node(const char *kind, const void *kernel)
{
	struct td_kernel_node params = kernel_node(NULL, kernel), old = kernel_node(kernel, NULL);
	struct td_node_params any = any_node(&params);
	struct td_kernel_node before;
	void *graph, *node, *exec;
	CUfunction function;
	CUmodule module;
	CUresult r;

	must(cuModuleLoadData(&module, image(64)), "another");
	must(cuModuleGetFunction(&function, module, "f"), "its function");
	before = kernel_node(function, NULL);
	must(cuGraphCreate(&graph, 0), "cuGraphCreate");
	must(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &before), "a node");
	must(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
	if (!strcmp(kind, "setnode1"))
		r = cuGraphKernelNodeSetParams(node, &old);
	else if (!strcmp(kind, "setany"))
		r = cuGraphNodeSetParams(node, &any);
	else if (!strcmp(kind, "setexec"))
		r = cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
	else if (!strcmp(kind, "setexec1"))
		r = cuGraphExecKernelNodeSetParams(exec, node, &old);
	else if (!strcmp(kind, "setexecany"))
		r = cuGraphExecNodeSetParams(exec, node, &any);
	else
		r = cuGraphKernelNodeSetParams_v2(node, &params);
	must(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
	must(cuGraphDestroy(graph), "cuGraphDestroy");
	must(cuModuleUnload(module), "unload");
	return r;
}

static bool is_node(const char *kind)
{
	return !strncmp(kind, "node", 4) || !strncmp(kind, "anynode", 7);
}

static CUresult use(const char *kind, void *library, void *kernel)
{
	CUfunction function;
	CUdeviceptr at;
	size_t size;
	int blocks;

	if (!strcmp(kind, "listed"))
		return cuLibraryEnumerateKernels(&kernel, 1, library);
	if (!strcmp(kind, "launched"))
		return launch(kernel, NULL);
	if (!strcmp(kind, "captured"))
		return capture(kernel);
	if (!strncmp(kind, "set", 3))
		return set_node(kind, kernel);
	if (is_node(kind))
		return add_node(kind, kernel);
	if (!strcmp(kind, "occupancy"))
		return cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 1, 0);
	return !strcmp(kind, "asked") ? cuKernelGetFunction(&function, kernel)
				      : cuLibraryGetGlobal(&at, &size, library, "words");
}

static void later(const char *kind, void **libraries, void **kernels)
{
	unsigned n = 0;
	CUresult r = CUDA_SUCCESS;

	while (n < LATER && !(r = use(kind, libraries[n], kernels[n])))
		n++;
	say(n, r);
	for (n = 0; n < LATER; n++)
		must(cuLibraryUnload(libraries[n]), "unload");
}

static void contexts(CUcontext *all, size_t bytes)
{
	CUresult r = CUDA_SUCCESS;
	unsigned n = 0;
	CUdeviceptr at;
	size_t size;
	void *library;

	must(cuCtxSetCurrent(all[0]), "cuCtxSetCurrent");
	must(load_library(&library, image(bytes)), "load");
	while (n < LATER && !r) {
		must(cuCtxSetCurrent(all[n]), "cuCtxSetCurrent");
		r = cuLibraryGetGlobal(&at, &size, library, "words");
		n += !r;
	}
	say(n, r);
	must(cuLibraryUnload(library), "unload");
}

static void streams(CUcontext *all, size_t bytes)
{
	CUstream made[LATER];
	CUresult r = CUDA_SUCCESS;
	void *library, *kernel;
	unsigned n = 0;

	for (unsigned i = 0; i < LATER; i++) {
		must(cuCtxSetCurrent(all[i]), "cuCtxSetCurrent");
		must(cuStreamCreate(&made[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	}
	must(cuCtxSetCurrent(all[0]), "cuCtxSetCurrent");
	must(cuLibraryLoadData(&library, image(bytes), NULL, NULL, 0, NULL, NULL, 0), "load");
	must(cuLibraryGetKernel(&kernel, library, "f"), "its kernel");
	while (n < LATER && !r) {
		r = launch(kernel, made[n]);
		n += !r;
	}
	say(n, r);
	must(cuLibraryUnload(library), "unload");
}

static void nodes(CUcontext *all, size_t bytes)
{
	CUresult r = CUDA_SUCCESS;
	void *library, *kernel;
	unsigned n = 0;

	must(cuCtxSetCurrent(all[0]), "cuCtxSetCurrent");
	must(cuLibraryLoadData(&library, image(bytes), NULL, NULL, 0, NULL, NULL, 0), "load");
	must(cuLibraryGetKernel(&kernel, library, "f"), "its kernel");
	while (n < LATER && !r) {
		struct td_kernel_node params = kernel_node(NULL, kernel);
		struct td_node_params any;
		void *graph, *node;

		params.context = all[n];
		any = any_node(&params);
		must(cuGraphCreate(&graph, 0), "cuGraphCreate");
		r = cuGraphAddNode(&node, graph, NULL, 0, &any);
		must(cuGraphDestroy(graph), "cuGraphDestroy");
		n += !r;
	}
	say(n, r);
	must(cuLibraryUnload(library), "unload");
}

#define THREADS 8
#define ROUNDS  50
#define BESIDE  ((size_t)20 << 20)

struct crowd {
	pthread_barrier_t barrier;
	CUcontext context;
	void *library;
	unsigned got[THREADS];
};

struct one {
	struct crowd *crowd;
	unsigned number;
};

static void *use_in_crowd(void *arg)
{
	const struct one *one = arg;
	struct crowd *c = one->crowd;
	CUdeviceptr at;
	size_t size;

	must(cuCtxSetCurrent(c->context), "cuCtxSetCurrent");
	for (unsigned i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&c->barrier);
		c->got[one->number] += !cuLibraryGetGlobal(&at, &size, c->library, "words");
	}
	return NULL;
}

/* Loaded while no context is current: it is asked for as it is used. */
static void crowd(CUcontext *all, size_t bytes)
{
	struct crowd c = {.context = all[0]};
	struct one each[THREADS];
	pthread_t threads[THREADS];
	CUdeviceptr beside;
	unsigned got = 0;

	must(pthread_barrier_init(&c.barrier, NULL, THREADS), "barrier");
	must(cuMemAlloc_v2(&beside, BESIDE), "beside");
	must(cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
	must(cuLibraryLoadData(&c.library, image(bytes), NULL, NULL, 0, NULL, NULL, 0), "load");
	for (unsigned i = 0; i < THREADS; i++) {
		each[i] = (struct one){&c, i};
		must(pthread_create(&threads[i], NULL, use_in_crowd, &each[i]), "thread");
	}
	for (unsigned i = 0; i < THREADS; i++) {
		must(pthread_join(threads[i], NULL), "join");
		got += c.got[i];
	}
	must(cuCtxSetCurrent(c.context), "cuCtxSetCurrent");
	must(cuLibraryUnload(c.library), "unload");
	must(cuMemFree_v2(beside), "free");
	say(got, CUDA_SUCCESS);
}

static void kept(CUcontext *all, size_t bytes)
{
	CUdeviceptr at;
	CUstream stream;
	CUresult refused, r;
	void *library, *graph;

	must(cuCtxSetCurrent(all[0]), "cuCtxSetCurrent");
	must(load_library(&library, image(bytes)), "load");
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	must(cuStreamBeginCapture_v2(stream, 0), "cuStreamBeginCapture"); /* global */
	refused = cuLibraryUnload(library);
	(void)cuStreamEndCapture(stream, &graph);
	r = cuMemAlloc_v2(&at, bytes);
	say(refused != CUDA_SUCCESS, r);
	must(cuStreamDestroy_v2(stream), "cuStreamDestroy");
	must(cuLibraryUnload(library), "unload");
	must(cuMemAlloc_v2(&at, bytes), "what it had");
	must(cuMemFree_v2(at), "free");
}

static void reset(size_t bytes)
{
	CUcontext context;
	CUdeviceptr at;
	size_t size;
	void *library;

	for (unsigned i = 0; i < 2; i++) {
		must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
		must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
		if (!i)
			must(load_library(&library, image(bytes)), "load");
		else
			must(cuLibraryGetGlobal(&at, &size, library, "words"), "once more");
		if (!i)
			must(cuDevicePrimaryCtxReset_v2(0), "reset");
	}
	say(1, cuMemAlloc_v2(&at, bytes));
	must(cuLibraryUnload(library), "unload");
	must(cuMemAlloc_v2(&at, bytes), "what it had");
}

static bool takes_kernels(const char *kind)
{
	return !strcmp(kind, "asked") || !strcmp(kind, "launched") || !strcmp(kind, "captured") ||
	       !strcmp(kind, "occupancy") || !strncmp(kind, "set", 3) ||
	       (is_node(kind) && strcmp(kind, "nodes"));
}

static bool is_one_of_later(const char *kind)
{
	return !strcmp(kind, "later") || !strcmp(kind, "packedlater") || !strcmp(kind, "listed") ||
	       takes_kernels(kind);
}

/* In several contexts, or more than once in one. */
static const struct {
	const char *name;
	void (*run)(CUcontext *all, size_t bytes);
	bool in_one;
} wide[] = {{"contexts", contexts, false}, {"streams", streams, false}, {"nodes", nodes, false},
	{"threads", crowd, true}, {"kept", kept, true}};

static int find_wide(const char *kind)
{
	for (unsigned i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (!strcmp(kind, wide[i].name))
			return (int)i;
	return -1;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? (size_t)atoll(argv[2]) : 0;
	bool is_later = bytes && is_one_of_later(argv[1]);
	void *handles[MOST], *kernels[LATER], *little;
	int in_each = bytes ? find_wide(argv[1]) : -1;
	CUcontext context[LATER];
	char line[16];

	if (!bytes) {
		fprintf(stderr, "usage: module_test KIND BYTES\n");
		return 2;
	}
	must(cuInit(0), "cuInit");
	for (unsigned i = 0; is_later && i < LATER; i++) {
		must(cuLibraryLoadData(&handles[i],
			     strcmp(argv[1], "packedlater") ? image(bytes)
							    : packed_image("", bytes, false),
			     NULL, NULL, 0, NULL, NULL, 0),
			"load");
		if (takes_kernels(argv[1]))
			must(cuLibraryGetKernel(&kernels[i], handles[i], "f"), "its kernel");
	}
	for (unsigned i = 0; i < (in_each < 0 || wide[in_each].in_one ? 1 : LATER); i++)
		must(cuCtxCreate_v2(&context[i], 0, 0), "cuCtxCreate");
	while (fgets(line, sizeof(line), stdin)) {
		unsigned n = 0;
		CUresult r = CUDA_SUCCESS;

		if (is_later) {
			later(argv[1], handles, kernels);
			continue;
		}
		if (in_each >= 0) {
			wide[in_each].run(context, bytes);
			continue;
		}
		if (!strcmp(argv[1], "reset")) {
			reset(bytes);
			break;
		}
		while (n < MOST && !(r = load(argv[1], &handles[n], bytes)))
			n++;
		must(load(argv[1], &little, strncmp(argv[1], "little", 6) ? 64 : bytes / 20 * 16),
			"a little");
		say(n, r);
		unload(argv[1], little);
		while (n)
			unload(argv[1], handles[--n]);
	}
	return 0;
}
