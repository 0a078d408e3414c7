/*
 * A program for modules.py, run under `softgpu run -- tandem run --mem`: module_test KIND BYTES. For each line on stdin it loads images with a variable of that size until
 * one is refused, then one with little data, and says in a line of JSON how many there are; then it unloads all of them.
 *
 *   data       cuModuleLoadData
 *   file       cuModuleLoad
 *   library    cuLibraryLoadData, and its variable in the current context
 *   later      the same, loaded before there is a context
 *   listed     the same, by its kernels
 *   asked      the same; its kernel is asked for before there is a context, and becomes a function in it
 *   reset      once: a library, and the primary context reset; then its variable once more, and as much memory as one more
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/signatures.h"

/* Every symbol, in the types of the generated signatures. */
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL

#define MOST  16
#define LATER 3

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "module_test: %s: %d\n", what, (int)r);
	exit(1);
}

static const char *image(size_t bytes)
{
	static char text[512];

	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n// .global .b8 no[1000000000];\n"
		".visible .global .align 4 .b32 words[%zu];\n.visible .entry f(.param .u64 .ptr "
		".global .align 4 p)\n{\nret;\n}\n",
		bytes / 4);
	return text;
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

static CUresult load_library(void **ret, size_t bytes)
{
	CUresult r = cuLibraryLoadData(ret, image(bytes), NULL, NULL, 0, NULL, NULL, 0);
	CUdeviceptr at;
	size_t size;

	if (!r)
		must(cuLibraryGetGlobal(&at, &size, *ret, "words"), "its variable");
	return r;
}

static CUresult load(const char *kind, void **ret, size_t bytes)
{
	if (!strcmp(kind, "library"))
		return load_library(ret, bytes);
	return !strcmp(kind, "file") ? load_file((CUmodule *)ret, bytes)
				     : cuModuleLoadData((CUmodule *)ret, image(bytes));
}

static void unload(const char *kind, void *handle)
{
	must(!strcmp(kind, "library") ? cuLibraryUnload(handle) : cuModuleUnload((CUmodule)handle),
		"unload");
}

static void say(unsigned count, CUresult r)
{
	printf("{\"loaded\": %u, \"result\": %d}\n", count, (int)r);
	fflush(stdout);
}

static CUresult use(const char *kind, void *library, void *kernel)
{
	CUfunction function;
	CUdeviceptr at;
	size_t size;

	if (!strcmp(kind, "listed"))
		return cuLibraryEnumerateKernels(&kernel, 1, library);
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
			must(load_library(&library, bytes), "load");
		else
			must(cuLibraryGetGlobal(&at, &size, library, "words"), "once more");
		if (!i)
			must(cuDevicePrimaryCtxReset_v2(0), "reset");
	}
	say(1, cuMemAlloc_v2(&at, bytes));
	must(cuLibraryUnload(library), "unload");
	must(cuMemAlloc_v2(&at, bytes), "what it had");
}

static bool is_one_of_later(const char *kind)
{
	return !strcmp(kind, "later") || !strcmp(kind, "listed") || !strcmp(kind, "asked");
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? (size_t)atoll(argv[2]) : 0;
	bool is_later = bytes && is_one_of_later(argv[1]);
	void *handles[MOST], *kernels[LATER], *little;
	CUcontext context;
	char line[16];

	if (!bytes) {
		fprintf(stderr,
			"usage: module_test data|file|library|later|listed|asked|reset BYTES\n");
		return 2;
	}
	must(cuInit(0), "cuInit");
	for (unsigned i = 0; is_later && i < LATER; i++) {
		must(cuLibraryLoadData(&handles[i], image(bytes), NULL, NULL, 0, NULL, NULL, 0),
			"load");
		if (!strcmp(argv[1], "asked"))
			must(cuLibraryGetKernel(&kernels[i], handles[i], "f"), "its kernel");
	}
	must(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
	while (fgets(line, sizeof(line), stdin)) {
		unsigned n = 0;
		CUresult r = CUDA_SUCCESS;

		if (is_later) {
			later(argv[1], handles, kernels);
			continue;
		}
		if (!strcmp(argv[1], "reset")) {
			reset(bytes);
			break;
		}
		while (n < MOST && !(r = load(argv[1], &handles[n], bytes)))
			n++;
		must(load(argv[1], &little, 64), "a little");
		say(n, r);
		unload(argv[1], little);
		while (n)
			unload(argv[1], handles[--n]);
	}
	return 0;
}
