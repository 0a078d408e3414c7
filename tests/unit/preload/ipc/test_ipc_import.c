/*
 * Memory of another process, which the test plays: one thread uses it while another waits for the
 * GPU.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "unit/preload/fake_vmm.h"
#include "preload/ipc/ipc.h"

#define BOUND (10 * TD_NS_PER_S) /* only a hang reaches it */

/* An abstract socket's name: with the process's number in it, so that two runs do not meet. */
static uint8_t name[TD_IPC_ID] = {3, 1, 4, 1, 5, 9};
static CUcontext here = (CUcontext)0xc1;
static CUresult sync_result;
static void (*in_sync)(void);
static _Atomic int opened;

/* One chunk, for whatever is asked for. Who has it open stays connected. */
static void *export_all(void *arg)
{
	int listener = *(int *)arg, fd, memory = memfd_create("chunk", MFD_CLOEXEC);
	struct td_ipc_reply reply = {.chunks = 1,
		.each_bytes = VMM_GRANULE,
		.last_bytes = VMM_GRANULE,
		.bytes = VMM_GRANULE};
	struct td_ipc_request request;

	memcpy(reply.magic, td_ipc_magic, sizeof(reply.magic));
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		if (td_ipc_receive(fd, &request, sizeof(request), NULL, NULL))
			break;
		(void)td_ipc_send(fd, &reply, sizeof(reply), NULL, 0);
		(void)td_ipc_send(fd, "", 1, &memory, 1);
	}
	return NULL;
}

static CUresult get_current(CUcontext *ret)
{
	*ret = here;
	return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
	void (*once)(void) = in_sync;

	in_sync = NULL;
	if (once)
		once();
	return sync_result;
}

static CUresult import(CUmemGenericAllocationHandle *ret, void *fd, int type)
{
	CUmemAllocationProp prop = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

	(void)fd, (void)type;
	return td_real.cuMemCreate(ret, VMM_GRANULE, &prop, 0);
}

static CUipcMemHandle handle_of(uint8_t id)
{
	struct td_ipc_handle handle = {.id = {id}};
	CUipcMemHandle opaque;

	memcpy(handle.magic, td_ipc_magic, sizeof(handle.magic));
	memcpy(handle.socket, name, sizeof(name));
	memcpy(&opaque, &handle, sizeof(opaque));
	return opaque;
}

static void begin(void)
{
	static pthread_t exporter;
	static int listener = -1;
	struct td_shared_file file;

	vmm_begin(64 * VMM_GRANULE, 0);
	vmm.fail_first = 1;
	td_real.cuCtxGetCurrent = get_current;
	td_real.cuCtxSynchronize = synchronize;
	td_real.cuMemImportFromShareableHandle = import;
	sync_result = CUDA_SUCCESS;
	in_sync = NULL;
	if (listener >= 0)
		return;
	memcpy(name + 8, &(pid_t){getpid()}, sizeof(pid_t));
	listener = td_ipc_listen(name, TD_IPC_ABSTRACT, &file);
	CHECK(listener >= 0);
	CHECK_EQ(pthread_create(&exporter, NULL, export_all, &listener), 0);
	pthread_detach(exporter);
}

static uint64_t open_one(uint8_t id)
{
	CUipcMemHandle handle = handle_of(id);
	uint64_t at = 0;

	CHECK_EQ(td_ipc_open(&handle, &at), CUDA_SUCCESS);
	return at;
}

static bool is_there(uint64_t at)
{
	struct td_swap_info info;

	return td_ipc_describe(at, &info) == CUDA_SUCCESS;
}

/* The memory was open once. */
static void check_closes(uint64_t at)
{
	bool last;

	CHECK_EQ(td_ipc_close(at, &last), CUDA_SUCCESS);
	CHECK(last && !is_there(at));
}

static void *open_another(void *arg)
{
	CUipcMemHandle handle = handle_of(2);
	uint64_t at;

	(void)arg;
	atomic_store(&opened, td_ipc_open(&handle, &at) ? -1 : 1);
	return NULL;
}

/* The GPU waits for the other thread's next call. */
static void open_beside(void)
{
	uint64_t end = td_time_now_ns() + BOUND;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, open_another, NULL), 0);
	while (!atomic_load(&opened) && td_time_now_ns() < end)
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
	CHECK_EQ(atomic_load(&opened), 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(who_waits_for_the_gpu_to_close_a_handle_keeps_nobody_from_opening_one)
{
	uint64_t at;

	begin();
	at = open_one(1);
	in_sync = open_beside;
	check_closes(at);
	td_ipc_context_ends(here);
	CHECK_EQ(vmm_memories() + vmm_count(vmm.mapped) + vmm_count(vmm.reserved), 0);
	CHECK_EQ(vmm.broken, 0);
}

static uint64_t closed_beside;

static void close_beside(void)
{
	check_closes(closed_beside);
}

TEST(of_two_who_close_it_one_does)
{
	bool last;

	begin();
	closed_beside = open_one(1);
	in_sync = close_beside;
	CHECK_EQ(td_ipc_close(closed_beside, &last), TD_BACKEND_NOT_MINE);
	CHECK(!last);
	CHECK_EQ(vmm_memories() + vmm_count(vmm.mapped) + vmm_count(vmm.reserved), 0);
}

/* As beside a capture: the program is told that it is open still, and may close it later. */
TEST(what_the_driver_does_not_wait_for_stays_open)
{
	uint64_t at;
	bool last;

	begin();
	at = open_one(1);
	sync_result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	CHECK_EQ(td_ipc_close(at, &last), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK(!last && is_there(at));
	sync_result = CUDA_SUCCESS;
	check_closes(at);
}
