/*
 * Programs for vmm.py, run under `softgpu run -- tandem run --mem`: memory by cuMemCreate that is
 * exported, released by its maker and mapped by an importer. Each prints a line of JSON for each
 * line on stdin, until end of file.
 *
 *   alone BLOCK    a block is made, exported, imported, released and mapped
 *   hidden BLOCK   the same, in a program with 20 MiB of unified memory that it does not touch
 *   held BLOCK     the same again and again, without a pause, but never mapped
 *   spin BLOCK     the same again and again, without a pause, until a block is refused
 *   pair BLOCK     this process makes and exports, another one imports and maps, this one releases
 *   chase BLOCK    the same again and again, without a pause, until a block is refused
 *   handle BLOCK   as pair, by cuIpcGetMemHandle of memory by cuMemAlloc, which this one frees; at
 *                  a line "close" the other one closes all; "handles": as chase
 *   keep BLOCK     as pair, but this one keeps it, and makes a block of 8 MiB beside it;
 *                  "keephandle": as handle
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/types.h"
#include "tests/integration/descriptors.h"

CUresult cuInit(unsigned flags);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemExportToShareableHandle(
	void *file, CUmemGenericAllocationHandle handle, int type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *file, int type);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t align, CUdeviceptr wanted,
	unsigned long long flags);
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemSetAccess(
	CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr address);
CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count);

#define UNTOUCHED  ((size_t)20 << 20)
#define BESIDE     ((size_t)8 << 20)
#define BLOCKS_MAX 4096
#define POSIX_FD   1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "vmm_test: %s: %d\n", what, (int)r);
	exit(1);
}

static void use_gpu(void)
{
	CUcontext context;

	must(cuInit(0), "cuInit");
	must(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
}

/* Returns the driver's answer to cuMemCreate. */
static CUresult make(size_t bytes, CUmemGenericAllocationHandle *ret, int *ret_file)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = POSIX_FD,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUresult r = cuMemCreate(ret, bytes, &prop, 0);

	if (!r)
		must(cuMemExportToShareableHandle(ret_file, *ret, POSIX_FD, 0), "export");
	return r;
}

/* The handle stays, and nothing is mapped. The descriptor is closed. */
static void hold(int file)
{
	CUmemGenericAllocationHandle handle;

	must(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, POSIX_FD), "import");
	close(file);
}

/* The descriptor is closed. */
static void map(int file, size_t bytes)
{
	const CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	must(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, POSIX_FD), "import");
	close(file);
	must(cuMemAddressReserve(&at, bytes, 0, 0, 0), "reserve");
	must(cuMemMap(at, bytes, 0, handle, 0), "map");
	must(cuMemSetAccess(at, bytes, &access, 1), "access");
	must(cuMemsetD32_v2(at, 7, 1), "set");
}

static CUresult round_alone(size_t bytes, bool maps)
{
	CUmemGenericAllocationHandle handle;
	int file;
	CUresult r = make(bytes, &handle, &file);

	if (r)
		return r;
	must(cuMemRelease(handle), "release");
	if (maps)
		map(file, bytes);
	else
		hold(file);
	return r;
}

static void say(CUresult r, unsigned long long had)
{
	printf("{\"result\": %d, \"bytes\": %llu}\n", (int)r, had);
	fflush(stdout);
}

static int alone(size_t bytes, bool spins, bool hides, bool maps)
{
	unsigned long long had = 0;
	CUdeviceptr untouched;
	char line[16];

	use_gpu();
	if (hides)
		must(cuMemAllocManaged(&untouched, UNTOUCHED, CU_MEM_ATTACH_GLOBAL), "managed");
	while (fgets(line, sizeof(line), stdin)) {
		CUresult r;

		do {
			r = round_alone(bytes, maps);
			had += r ? 0 : bytes;
		} while (spins && !r);
		say(r, had);
	}
	return 0;
}

static void importer(int socket, size_t bytes)
{
	int file;

	use_gpu();
	while ((file = receive_file(socket)) >= 0) {
		map(file, bytes);
		if (write(socket, "m", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/* Zeros for a handle: all that it has open is closed. */
static void opener(int socket)
{
	static const CUipcMemHandle none;
	CUdeviceptr open[BLOCKS_MAX];
	CUipcMemHandle handle;
	unsigned n = 0;

	use_gpu();
	while (read(socket, &handle, sizeof(handle)) == sizeof(handle)) {
		if (!memcmp(&handle, &none, sizeof(none))) {
			while (n)
				must(cuIpcCloseMemHandle(open[--n]), "close");
		} else {
			must(n == BLOCKS_MAX, "too many");
			must(cuIpcOpenMemHandle_v2(&open[n], handle, 1), "open");
			must(cuMemsetD32_v2(open[n++], 7, 1), "set");
		}
		if (write(socket, "m", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static CUresult close_all(int socket)
{
	CUipcMemHandle none = {0};
	char done;

	if (write(socket, &none, sizeof(none)) != sizeof(none) || read(socket, &done, 1) != 1)
		exit(1);
	return 0;
}

/* Has the other process open a block that is then freed. */
static CUresult round_by_handle(int socket, size_t bytes, bool keeps)
{
	CUipcMemHandle handle;
	CUdeviceptr at;
	char done;
	CUresult r = cuMemAlloc_v2(&at, bytes);

	if (r)
		return r;
	must(cuIpcGetMemHandle(&handle, at), "handle");
	if (write(socket, &handle, sizeof(handle)) != sizeof(handle) || read(socket, &done, 1) != 1)
		exit(1);
	if (!keeps)
		must(cuMemFree_v2(at), "free");
	return r;
}

/* Has the other process map a block. */
static CUresult round_with(int socket, size_t bytes, bool keeps)
{
	CUmemGenericAllocationHandle handle;
	char done;
	int file;
	CUresult r = make(bytes, &handle, &file);

	if (r)
		return r;
	if (send_file(socket, file) || read(socket, &done, 1) != 1)
		exit(1);
	close(file);
	if (!keeps)
		must(cuMemRelease(handle), "release");
	return r;
}

enum { ONCE, SPINS, KEEPS };

static int pair(size_t bytes, int how, bool by_handle)
{
	unsigned long long had = 0;
	int sockets[2], status;
	char line[16];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || (child = fork()) < 0)
		return 1;
	if (!child) {
		close(sockets[0]);
		if (by_handle)
			opener(sockets[1]);
		importer(sockets[1], bytes);
	}
	close(sockets[1]);
	use_gpu();
	while (fgets(line, sizeof(line), stdin)) {
		CUresult r;

		if (by_handle && !strcmp(line, "close\n")) {
			had = 0;
			say(close_all(sockets[0]), had);
			continue;
		}
		do {
			r = by_handle ? round_by_handle(sockets[0], bytes, how == KEEPS)
				      : round_with(sockets[0], bytes, how == KEEPS);
			had += r ? 0 : bytes;
		} while (how == SPINS && !r);
		if (how == KEEPS) {
			CUmemGenericAllocationHandle beside;
			int file;

			r = make(BESIDE, &beside, &file);
			had += r ? 0 : BESIDE;
		}
		say(r, had);
	}
	close(sockets[0]);
	return waitpid(child, &status, 0) != child || status;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? (size_t)atoll(argv[2]) : 0;

	if (bytes && !strcmp(argv[1], "alone"))
		return alone(bytes, false, false, true);
	if (bytes && !strcmp(argv[1], "hidden"))
		return alone(bytes, false, true, true);
	if (bytes && !strcmp(argv[1], "held"))
		return alone(bytes, true, false, false);
	if (bytes && !strcmp(argv[1], "spin"))
		return alone(bytes, true, false, true);
	if (bytes && !strcmp(argv[1], "pair"))
		return pair(bytes, ONCE, false);
	if (bytes && !strcmp(argv[1], "handle"))
		return pair(bytes, ONCE, true);
	if (bytes && !strcmp(argv[1], "handles"))
		return pair(bytes, SPINS, true);
	if (bytes && !strcmp(argv[1], "chase"))
		return pair(bytes, SPINS, false);
	if (bytes && !strcmp(argv[1], "keep"))
		return pair(bytes, KEEPS, false);
	if (bytes && !strcmp(argv[1], "keephandle"))
		return pair(bytes, KEEPS, true);
	fprintf(stderr, "usage: vmm_test "
			"alone|hidden|held|spin|pair|handle|handles|chase|keep|keephandle BLOCK\n");
	return 2;
}
