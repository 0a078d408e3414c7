/*
 * Memory and events of other processes (cuIpc*). A handle names a file of the exporting process:
 * its pid, its file descriptor, and the expected inode. The importer opens the file through /proc.
 * This works between processes of the same user. Opening fails if the exporter has exited or closed
 * the file.
 * Memory: only memory of cuMemAlloc can be exported. Memory of cuMemCreate and of pools has handles
 * of its own (cuda.h) and is refused. A handle is valid while its memory is allocated: a second
 * file of the exporter has one word for each export, which is cleared when the memory is freed.
 * The memory is charged once, to its owner. cuda.h does not define what happens if the owner frees
 * it, or exits, while others have it open. Programs on real drivers report that it stays on the GPU
 * until they have closed it: the free memory falls with each block that is allocated, opened
 * elsewhere and freed (open-mpi/ompi issue 12971, rapidsai/ucx-py 315, ai-dynamo/nixl 1066).
 * Therefore the memory then belongs to those who hold it, like memory of cuMemCreate
 * (server/shared.c). With SG_FEATURE_IPC_KEEPS off, it belongs to nobody. In either case its
 * contents are undefined, because the owner's next allocation may use the same place.
 * Events: a page with two counters, for records requested and records reached. Waiting processes
 * poll it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/driver/device/mps.h"
#include "softgpu/driver/memory/ipc.h"

#define MEMORY_MAGIC  0x474du
#define EVENT_MAGIC   0x4745u
#define LAZY_PEER     1u /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
#define LOOK_EVERY_NS 50000
#define ALIVE_EVERY   2000 /* polls between two checks that the other process lives */

struct handle {
	uint16_t magic;
	uint16_t gpu; /* the server's number of the GPU */
	int32_t pid, fd;
	uint32_t mps; /* the MPS server of the exporting process, 0: none */
	uint64_t inode, offset, bytes;
	/*
	 * Only for memory handles: the export's word, and the id in it while the memory is
	 * allocated.
	 */
	int32_t words_fd;
	uint32_t word;
	uint64_t words_inode, id;
};
_Static_assert(sizeof(struct handle) <= sizeof(CUipcMemHandle), "a handle has 64 bytes");

struct opened {
	struct td_list link;
	struct CUctx_st *context;
	struct handle handle;
	uint64_t address, base, bytes; /* base and bytes cover whole granules */
	uint8_t *host;
	uint64_t run; /* number of the shared granules; 0: charged to the owner only */
	uint32_t device;
	unsigned references;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct td_list all_opened = {&all_opened, &all_opened};

struct exported {
	struct td_list link;
	uint64_t base, id, run; /* run: returned by sg_granules_share() */
	uint32_t word;
};
struct word {
	uint64_t id, run; /* id 0: the memory was freed */
};
static struct td_list all_exported = {&all_exported, &all_exported};
static int words_fd = -1;
static uint32_t word_count;

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_ino;
}

/*
 * Handles work among clients of one MPS server and among processes without MPS, but not between the
 * two.
 */
static uint32_t mps_server(void)
{
	return (uint32_t)sg_mps_server();
}

/* Opens the exporter's file. Returns a negative number if it is gone or we may not open it. */
static int open_file(int32_t pid, int32_t number, uint64_t inode)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && inode_of(fd) != inode) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* -- memory -- */

static bool write_word(uint32_t number, struct word word)
{
	return pwrite(words_fd, &word, sizeof(word), (off_t)(number * sizeof(word))) ==
	       sizeof(word);
}

/*
 * Finds or creates the export of an allocation. Called with lock held. Returns NULL if there is no
 * memory.
 */
static struct exported *export(const struct sg_allocation *allocation)
{
	struct exported *e;
	struct td_list *it;

	td_list_for_each (it, &all_exported)
		if (td_container_of(it, struct exported, link)->base == allocation->base)
			return td_container_of(it, struct exported, link);
	if (words_fd < 0)
		words_fd = memfd_create("softgpu-exports", MFD_CLOEXEC);
	e = words_fd < 0 ? NULL : calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	*e = (struct exported){.base = allocation->base,
		.id = allocation->id,
		.run = sg_granules_share(allocation),
		.word = word_count};
	if (!write_word(e->word, (struct word){e->id, e->run})) {
		free(e);
		return NULL;
	}
	word_count++;
	td_list_append(&all_exported, &e->link);
	return e;
}

void sg_ipc_memory_gone(uint64_t address)
{
	struct td_list *it, *tmp;

	pthread_mutex_lock(&lock);
	td_list_for_each_safe (it, tmp, &all_exported) {
		struct exported *e = td_container_of(it, struct exported, link);

		if (e->base != address)
			continue;
		(void)write_word(e->word, (struct word){0});
		td_list_remove(&e->link);
		free(e);
	}
	pthread_mutex_unlock(&lock);
}

/* Checks that the exported memory is still allocated. */
static int check_word(const struct handle *handle, uint64_t *ret_run)
{
	int fd = open_file(handle->pid, handle->words_fd, handle->words_inode);
	struct word word = {0};
	ssize_t n;

	if (fd < 0)
		return CUDA_ERROR_MAP_FAILED;
	n = pread(fd, &word, sizeof(word), (off_t)(handle->word * sizeof(word)));
	close(fd);
	*ret_run = word.run;
	return n == sizeof(word) && word.id == handle->id ? CUDA_SUCCESS
							  : CUDA_ERROR_INVALID_HANDLE;
}

API CUresult cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr address)
{
	struct handle handle = {.magic = MEMORY_MAGIC, .pid = getpid(), .mps = mps_server()};
	struct sg_allocation allocation;
	struct CUctx_st *context;
	const struct exported *e;
	int r = sg_current(&context);

	if (r)
		return r;
	/*
	 * cuda.h: "a pointer to the base of an existing device memory allocation created with
	 * cuMemAlloc".
	 */
	if (!ret || !sg_memory_find(address, 1, &allocation) || allocation.base != address ||
		allocation.kind != SG_MEMORY_DEVICE || !allocation.context || allocation.owned)
		return CUDA_ERROR_INVALID_VALUE;
	handle.gpu = (uint16_t)sg.devices[allocation.device].gpu;
	handle.bytes = allocation.bytes;
	handle.fd = sg_arena_place(address, &handle.offset);
	handle.inode = inode_of(handle.fd);
	pthread_mutex_lock(&lock);
	e = export(&allocation);
	if (e) {
		handle.words_fd = words_fd;
		handle.word = e->word;
		handle.id = e->id;
	}
	pthread_mutex_unlock(&lock);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle.words_inode = inode_of(handle.words_fd);
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

/* Called with lock held. */
static struct opened *find_opened(const struct CUctx_st *context, const struct handle *handle)
{
	struct td_list *it;

	td_list_for_each (it, &all_opened) {
		struct opened *o = td_container_of(it, struct opened, link);

		if (o->context == context && !memcmp(&o->handle, handle, sizeof(*handle)))
			return o;
	}
	return NULL;
}

static void drop(const struct opened *o)
{
	struct sg_msg msg = {.type = SG_MEMORY_DROP, .value = o->handle.inode, .value2 = o->run};

	if (o->run)
		(void)sg_client_request(sg.client, &msg, NULL, 0, NULL);
}

/*
 * Holds the shared granules at the server. The owner clears the word before it frees the memory, so
 * the word is checked again afterwards: if it was cleared meanwhile, the hold is dropped.
 */
static int hold(struct opened *o)
{
	struct sg_msg msg = {.type = SG_MEMORY_HOLD,
		.gpu = o->device,
		.bytes = o->bytes,
		.value = o->handle.inode};
	int r = check_word(&o->handle, &o->run);

	if (r || !o->run)
		return r;
	msg.value2 = o->run;
	if (sg_client_request(sg.client, &msg, NULL, 0, NULL))
		return SG_LOST;
	if (msg.error)
		return msg.error == SG_ERR_MEMORY ? CUDA_ERROR_INVALID_HANDLE
						  : CUDA_ERROR_MAP_FAILED;
	r = check_word(&o->handle, &o->run);
	if (r) {
		o->run = msg.value2;
		drop(o);
	}
	return r;
}

static int map_pages(struct opened *o, uint64_t first)
{
	int fd = open_file(o->handle.pid, o->handle.fd, o->handle.inode);
	void *pages;

	if (fd < 0)
		return CUDA_ERROR_MAP_FAILED;
	pages = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)first);
	close(fd);
	if (pages == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	o->host = pages;
	o->base = sg_address_reserve(o->bytes, GRANULE);
	if (o->base)
		return CUDA_SUCCESS;
	munmap(pages, o->bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static int map(struct opened *o)
{
	uint64_t first = o->handle.offset & ~(GRANULE - 1);
	int r;

	if (!sg_device_of_gpu(o->handle.gpu, &o->device))
		return CUDA_ERROR_MAP_FAILED; /* this process does not see that GPU */
	o->bytes = (o->handle.offset + o->handle.bytes - first + GRANULE - 1) & ~(GRANULE - 1);
	r = hold(o);
	if (r)
		return r;
	r = map_pages(o, first);
	if (r) {
		drop(o);
		return r;
	}
	o->address = o->base + (o->handle.offset - first);
	sg_granules_set(o->base, o->bytes,
		&(struct sg_granule){.host = o->host,
			.home = (uint8_t)o->device,
			.peers = true,
			.devices = SG_DEVICE_BIT(o->device) | SG_DEVICE_BIT(o->context->device)});
	sg_allocation_add(&(struct sg_allocation){.base = o->address,
		.bytes = o->handle.bytes,
		.kind = SG_MEMORY_DEVICE,
		.device = o->device});
	return CUDA_SUCCESS;
}

/* Called with lock held. */
static int open_new(struct CUctx_st *context, const struct handle *handle, struct opened **ret)
{
	struct opened *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->context = context;
	o->handle = *handle;
	r = map(o);
	if (r) {
		free(o);
		return r;
	}
	td_list_append(&all_opened, &o->link);
	*ret = o;
	return CUDA_SUCCESS;
}

API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ret, CUipcMemHandle opaque, unsigned flags)
{
	struct handle handle;
	struct CUctx_st *context;
	struct opened *o;
	int r = sg_current_unsafe(&context);

	if (r)
		return r;
	memcpy(&handle, &opaque, sizeof(handle));
	if (!ret || flags != LAZY_PEER || handle.magic != MEMORY_MAGIC || handle.gpu >= SG_GPU_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	/* cuda.h: a process cannot open its own handle */
	if (handle.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (handle.mps != mps_server())
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	o = find_opened(context, &handle);
	if (!o)
		r = open_new(context, &handle, &o);
	if (!r) {
		o->references++;
		*ret = o->address;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static void unmap(struct opened *o)
{
	struct sg_allocation allocation;

	td_list_remove(&o->link);
	(void)sg_allocation_remove(o->address, &allocation);
	sg_granules_set(o->base, o->bytes, &(struct sg_granule){0});
	sg_address_release(o->base, o->bytes);
	sg_pages_free(o->host, o->bytes);
	drop(o);
	free(o);
}

API CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	struct CUctx_st *context;
	struct td_list *it, *tmp;
	int r = sg_current_unsafe(&context), found = CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = sg_context_synchronize(context);
	pthread_mutex_lock(&lock);
	td_list_for_each_safe (it, tmp, &all_opened) {
		struct opened *o = td_container_of(it, struct opened, link);

		if (o->context != context || o->address != address)
			continue;
		found = r;
		if (!--o->references)
			unmap(o);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void sg_ipc_context_gone(struct CUctx_st *context)
{
	struct td_list *it, *tmp;

	pthread_mutex_lock(&lock);
	td_list_for_each_safe (it, tmp, &all_opened)
		if (td_container_of(it, struct opened, link)->context == context)
			unmap(td_container_of(it, struct opened, link));
	pthread_mutex_unlock(&lock);
}

/* -- events -- */

struct sg_shared_event {
	uint64_t recorded, reached;
	/* pid of the latest recorder; if it dies, its pending record is never reached */
	int32_t recorder;
};

static struct sg_shared_event *map_event(int fd)
{
	void *page = mmap(
		NULL, sizeof(struct sg_shared_event), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

int sg_shared_event_new(struct sg_shared_event **ret, int *ret_fd)
{
	int fd = memfd_create("softgpu-event", MFD_CLOEXEC);

	*ret = NULL;
	if (fd >= 0 && !ftruncate(fd, sizeof(**ret)))
		*ret = map_event(fd);
	if (!*ret) {
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_fd = fd;
	return CUDA_SUCCESS;
}

uint64_t sg_shared_event_record(struct sg_shared_event *event)
{
	__atomic_store_n(&event->recorder, getpid(), __ATOMIC_RELAXED);
	return __atomic_add_fetch(&event->recorded, 1, __ATOMIC_ACQ_REL);
}

void sg_shared_event_reach(struct sg_shared_event *event, uint64_t record)
{
	uint64_t before = __atomic_load_n(&event->reached, __ATOMIC_ACQUIRE);

	while (before < record && !__atomic_compare_exchange_n(&event->reached, &before, record,
					  false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

uint64_t sg_shared_event_last(const struct sg_shared_event *event)
{
	return __atomic_load_n(&event->recorded, __ATOMIC_ACQUIRE);
}

bool sg_shared_event_reached(const struct sg_shared_event *event, uint64_t record)
{
	return __atomic_load_n(&event->reached, __ATOMIC_ACQUIRE) >= record;
}

static bool is_gone(pid_t pid)
{
	return pid && kill(pid, 0) && errno == ESRCH;
}

void sg_shared_event_wait(
	const struct sg_shared_event *event, uint64_t record, const volatile int *cancel)
{
	const struct timespec pause = {0, LOOK_EVERY_NS};

	for (unsigned looks = 1; !sg_shared_event_reached(event, record) &&
				 !__atomic_load_n(cancel, __ATOMIC_RELAXED);
		looks++) {
		if (looks % ALIVE_EVERY == 0 &&
			is_gone(__atomic_load_n(&event->recorder, __ATOMIC_RELAXED)))
			return;
		nanosleep(&pause, NULL);
	}
}

API CUresult cuIpcGetEventHandle(CUipcEventHandle *ret, CUevent event)
{
	struct handle handle = {.magic = EVENT_MAGIC, .pid = getpid(), .mps = mps_server()};
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!sg_event_find(event) || event->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	/* CU_EVENT_INTERPROCESS has its own calls; this handle is this process's own event */
	if (!ret || !event->shared || event->shared_fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	handle.fd = event->shared_fd;
	handle.inode = inode_of(handle.fd);
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

API CUresult cuIpcOpenEventHandle(CUevent *ret, CUipcEventHandle opaque)
{
	struct handle handle;
	struct CUctx_st *context;
	struct sg_shared_event *shared;
	int fd, r = sg_current_unsafe(&context);

	if (r)
		return r;
	memcpy(&handle, &opaque, sizeof(handle));
	if (!ret || handle.magic != EVENT_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (handle.mps != mps_server())
		return CUDA_ERROR_NOT_SUPPORTED;
	fd = open_file(handle.pid, handle.fd, handle.inode);
	if (fd < 0)
		return CUDA_ERROR_MAP_FAILED;
	shared = map_event(fd);
	close(fd);
	if (!shared)
		return CUDA_ERROR_MAP_FAILED;
	r = sg_event_new(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, shared, -1, ret);
	if (r)
		munmap(shared, sizeof(*shared));
	return r;
}
