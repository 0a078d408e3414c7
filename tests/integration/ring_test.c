/*
 * Processes of one program that share memory by cuMemCreate through descriptors, as CUDA's sample
 * memMapIPC does: ring_test parent|leaves|each PROCESSES BYTES ROUNDS
 *
 * A block of BYTES lies on the GPU of each of PROCESSES children, which are this program once more.
 * The child makes it itself (each), or their parent does, which keeps it (parent) or releases it
 * once all have its descriptor (leaves). Each child maps all of them. In each round it fills a
 * block that another one filled the round before.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/signatures.h"
#include "tests/integration/descriptors.h"

/* Handles that cuda/types.h does not have are void *. */
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL

#define PROCESSES_MAX 16
#define MORE          (1u << 20)
#define POSIX_FD      1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

static unsigned processes, rounds;
static size_t bytes;
static int gpus;

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "ring_test: %s: %d\n", what, (int)r);
	exit(1);
}

static void must_io(int failed, const char *what)
{
	must(failed ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, what);
}

/* Until all the others are there, too. */
static void meet(int socket)
{
	char byte = 'b';

	must_io(write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1, "a sibling");
}

static CUmemGenericAllocationHandle made[PROCESSES_MAX];

static int make_block(unsigned of)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = POSIX_FD,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)of % gpus}};
	CUmemGenericAllocationHandle handle;
	int file = -1;

	must(cuMemCreate(&handle, bytes, &prop, 0), "cuMemCreate");
	must(cuMemExportToShareableHandle(&file, handle, POSIX_FD, 0), "export");
	made[of] = handle;
	return file;
}

static void release_blocks(void)
{
	for (unsigned i = 0; i < processes; i++)
		if (made[i]) {
			must(cuMemRelease(made[i]), "release");
			made[i] = 0;
		}
}

static void map_block(CUdeviceptr at, int file, int gpu)
{
	const CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;

	must_io(file < 0, "a descriptor");
	must(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, POSIX_FD), "import");
	close(file);
	must(cuMemMap(at, bytes, 0, handle, 0), "map");
	must(cuMemSetAccess(at, bytes, &access, 1), "access");
	must(cuMemRelease(handle), "release what is mapped");
}

/* Returns the value that child `by` leaves there in a round. */
static unsigned value_of(unsigned by, unsigned round)
{
	return by * 1000 + round + 1;
}

static void go_around(unsigned self, CUdeviceptr blocks, int socket)
{
	for (unsigned round = 0; round < rounds; round++) {
		unsigned mine = (self + round) % processes, next = (mine + 1) % processes;
		unsigned by = (self + 1) % processes, got = 0;
		CUdeviceptr more, at = blocks + mine * bytes;

		must(cuMemsetD32_v2(at, value_of(self, round), bytes / 4), "set");
		must(cuCtxSynchronize(), "synchronize");
		meet(socket);
		must(cuMemcpyDtoH_v2(&got, blocks + next * bytes, sizeof(got)), "copy");
		must_io(got != value_of(by, round), "its first word");
		must(cuMemcpyDtoH_v2(&got, blocks + (next + 1) * bytes - 4, sizeof(got)), "copy");
		must_io(got != value_of(by, round), "its last word");
		meet(socket);
		must(cuMemAlloc_v2(&more, MORE), "cuMemAlloc");
		must(cuMemsetD32_v2(more, round, MORE / 4), "set");
		must(cuMemFree_v2(more), "cuMemFree");
	}
}

static int child(unsigned self, int socket, bool makes)
{
	CUcontext context;
	CUdeviceptr blocks;

	must(cuInit(0), "cuInit");
	must(cuDeviceGetCount(&gpus), "count");
	must(cuCtxCreate_v2(&context, 0, (int)self % gpus), "cuCtxCreate");
	if (makes)
		must_io(send_file(socket, make_block(self)), "send");
	must(cuMemAddressReserve(&blocks, processes * bytes, 0, 0, 0), "reserve");
	for (unsigned i = 0; i < processes; i++)
		map_block(blocks + i * bytes, receive_file(socket), (int)self % gpus);
	go_around(self, blocks, socket);
	must(cuMemUnmap(blocks, processes * bytes), "unmap");
	must(cuMemAddressFree(blocks, processes * bytes), "free");
	release_blocks();
	must(cuCtxDestroy_v2(context), "destroy");
	return 0;
}

static pid_t start(char **argv, unsigned self, int *ret_socket)
{
	char number[16], socket[16];
	int pair[2];
	pid_t pid;

	must_io(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "socketpair");
	pid = fork();
	must_io(pid < 0, "fork");
	if (!pid) {
		snprintf(number, sizeof(number), "%u", self);
		snprintf(socket, sizeof(socket), "%d", dup(pair[1]));
		execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], argv[4], number, socket,
			(char *)NULL);
		_exit(1);
	}
	close(pair[1]);
	*ret_socket = pair[0];
	return pid;
}

static void share_blocks(const int *sockets, const int *files)
{
	for (unsigned i = 0; i < processes; i++)
		for (unsigned n = 0; n < processes; n++)
			must_io(files[n] < 0 || send_file(sockets[i], files[n]), "send");
	for (unsigned i = 0; i < processes; i++)
		close(files[i]);
}

static void hold_meetings(const int *sockets)
{
	char byte;

	for (unsigned n = 0; n < 2 * rounds; n++) {
		for (unsigned i = 0; i < processes; i++)
			must_io(read(sockets[i], &byte, 1) != 1, "a child");
		for (unsigned i = 0; i < processes; i++)
			must_io(write(sockets[i], &byte, 1) != 1, "a child");
	}
}

static int parent(char **argv, bool children_make)
{
	int files[PROCESSES_MAX], sockets[PROCESSES_MAX], status;
	pid_t pids[PROCESSES_MAX];

	if (!children_make) {
		must(cuInit(0), "cuInit");
		must(cuDeviceGetCount(&gpus), "count");
		for (unsigned i = 0; i < processes; i++)
			files[i] = make_block(i);
	}
	for (unsigned i = 0; i < processes; i++)
		pids[i] = start(argv, i, &sockets[i]);
	for (unsigned i = 0; i < processes && children_make; i++)
		files[i] = receive_file(sockets[i]);
	share_blocks(sockets, files);
	if (!strcmp(argv[1], "leaves"))
		release_blocks();
	hold_meetings(sockets);
	for (unsigned i = 0; i < processes; i++)
		must_io(waitpid(pids[i], &status, 0) != pids[i] || status, "a child's end");
	release_blocks();
	printf("%u blocks, %u rounds: ok\n", processes, rounds);
	return 0;
}

int main(int argc, char **argv)
{
	bool each = argc > 1 && !strcmp(argv[1], "each");

	if (argc < 5)
		return 2;
	processes = (unsigned)atoi(argv[2]);
	bytes = (size_t)atoll(argv[3]);
	rounds = (unsigned)atoi(argv[4]);
	if (!processes || processes > PROCESSES_MAX)
		return 2;
	return argc == 7 ? child((unsigned)atoi(argv[5]), atoi(argv[6]), each) : parent(argv, each);
}
