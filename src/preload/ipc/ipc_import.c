/*
 * The importer's side of shared memory; see ipc.h. All imports are in one list. Its lock is held
 * while a handle is being opened.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/base/backend.h"
#include "preload/base/ranges.h"
#include "preload/base/thread.h"
#include "preload/driver/real.h"
#include "preload/ipc/ipc.h"
#include "preload/ipc/shares.h"
#include "preload/link/conn.h"

#define POSIX_FD   1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
#define CHUNKS_MAX (1u << 20)

struct import {
	struct import *next;
	struct td_ipc_handle handle;
	CUcontext context;
	struct td_conn *conn;
	uint64_t base, mapped_bytes; /* the whole mapped range */
	uint64_t address, bytes;     /* the allocation within it */
	CUdevice device;             /* the device that has the memory */
	unsigned references;
	uint32_t count; /* chunks in all, and mapped so far */
	uint32_t chunks;
	uint64_t each_bytes, last_bytes;
	CUmemGenericAllocationHandle handles[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct import *imports; /* guarded by lock */
/*
 * Mapped memory by address. It has a lock of its own, so that queries do not wait for a thread that
 * is opening a handle.
 */
static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER; /* taken after lock */
static struct td_ranges by_address;

bool td_ipc_is_ours(const CUipcMemHandle *handle)
{
	return !memcmp(handle, td_ipc_magic, sizeof(td_ipc_magic));
}

static uint64_t chunk_bytes(const struct import *i, uint32_t chunk)
{
	return chunk + 1 == i->chunks ? i->last_bytes : i->each_bytes;
}

static bool note_import(struct import *i)
{
	bool noted;

	pthread_mutex_lock(&index_lock);
	noted = !td_ranges_add(&by_address, (struct td_allocation){i->base, i->mapped_bytes, 0, i});
	pthread_mutex_unlock(&index_lock);
	if (noted)
		td_reach_begin();
	return noted;
}

static void end_import(struct import *i)
{
	struct td_allocation row;

	pthread_mutex_lock(&index_lock);
	(void)td_ranges_remove(&by_address, i->base, &row);
	pthread_mutex_unlock(&index_lock);
	for (uint32_t c = 0; c < i->count; c++) {
		(void)td_real.cuMemUnmap(i->base + c * i->each_bytes, chunk_bytes(i, c));
		(void)td_real.cuMemRelease(i->handles[c]);
	}
	if (i->base)
		(void)td_real.cuMemAddressFree(i->base, i->mapped_bytes);
	/* The exporter may free the memory as soon as this returns. */
	td_ipc_hang_up(i->conn);
	free(i);
}

/* -- opening -- */

/* Checks a reply: one with impossible sizes does not come from tandem. */
static bool is_sound(const struct td_ipc_reply *r)
{
	return !memcmp(r->magic, td_ipc_magic, sizeof(r->magic)) && r->chunks &&
	       r->chunks <= CHUNKS_MAX && r->each_bytes && r->each_bytes < 1ull << 40 &&
	       r->last_bytes && r->last_bytes <= r->each_bytes && r->bytes &&
	       r->offset < r->each_bytes * (r->chunks - 1) + r->last_bytes &&
	       r->bytes <= r->each_bytes * (r->chunks - 1) + r->last_bytes - r->offset;
}

static int import_one(struct import *i, int fd)
{
	uint32_t c = i->count;
	int r = td_real.cuMemImportFromShareableHandle(
		&i->handles[c], (void *)(intptr_t)fd, POSIX_FD);

	if (r)
		return r;
	r = td_real.cuMemMap(i->base + c * i->each_bytes, chunk_bytes(i, c), 0, i->handles[c], 0);
	if (r)
		(void)td_real.cuMemRelease(i->handles[c]);
	else
		i->count++;
	return r;
}

/* Imports the descriptors of one packet. */
static int import_some(struct import *i)
{
	unsigned n = TD_IPC_FDS;
	int fds[TD_IPC_FDS], r = CUDA_SUCCESS;
	char byte;

	if (td_ipc_receive(atomic_load(&i->conn->fd), &byte, 1, fds, &n) || !n)
		r = CUDA_ERROR_MAP_FAILED;
	for (unsigned k = 0; k < n; k++) {
		if (!r && i->count < i->chunks)
			r = import_one(i, fds[k]);
		close(fds[k]);
	}
	return r;
}

/*
 * Maps imported memory for the current device and for the device that the memory is on. Both need
 * access so that copies between them are direct.
 */
static int let_in(struct import *i)
{
	CUmemAllocationProp prop;
	CUdevice here;
	CUmemAccessDesc access[2];

	if (td_real.cuCtxGetDevice(&here))
		return CUDA_ERROR_INVALID_CONTEXT;
	i->device = here;
	if (td_real.cuMemGetAllocationPropertiesFromHandle &&
		!td_real.cuMemGetAllocationPropertiesFromHandle(&prop, i->handles[0]))
		i->device = prop.location.id;
	access[0] = (CUmemAccessDesc){
		{CU_MEM_LOCATION_TYPE_DEVICE, here}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	access[1] = (CUmemAccessDesc){
		{CU_MEM_LOCATION_TYPE_DEVICE, i->device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	return td_real.cuMemSetAccess(i->base, i->mapped_bytes, access, i->device == here ? 1 : 2);
}

static int map(struct import *i)
{
	CUdeviceptr base;
	int r = td_real.cuMemAddressReserve(&base, i->mapped_bytes, 0, 0, 0);

	if (r)
		return r;
	i->base = base;
	i->address += base;
	while (!r && i->count < i->chunks)
		r = import_some(i);
	return r ? r : let_in(i);
}

/* Asks the exporter for the memory. On failure returns NULL and sets *ret_result. */
static struct import *ask_exporter(const struct td_ipc_handle *handle, int *ret_result)
{
	struct td_ipc_request request = {0};
	struct td_ipc_reply reply;
	struct td_conn *conn;
	struct import *i;
	int fd = td_ipc_connect(handle->socket);

	*ret_result = fd == -EACCES ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_MAP_FAILED;
	if (fd < 0)
		return NULL;
	/*
	 * From here on a forked child closes the connection. Otherwise the exporter would take the
	 * child for this process.
	 */
	conn = td_ipc_conn_new(fd);
	if (!conn)
		return NULL;
	fd = atomic_load(&conn->fd);
	memcpy(request.magic, td_ipc_magic, sizeof(request.magic));
	memcpy(request.id, handle->id, sizeof(request.id));
	if (td_ipc_send(fd, &request, sizeof(request), NULL, 0) ||
		td_ipc_receive(fd, &reply, sizeof(reply), NULL, NULL))
		goto err_close;
	*ret_result = (int)reply.result;
	if (reply.result || !is_sound(&reply))
		goto err_close;
	*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
	i = calloc(1, sizeof(*i) + reply.chunks * sizeof(i->handles[0]));
	if (!i)
		goto err_close;
	*i = (struct import){.handle = *handle,
		.address = reply.offset,
		.bytes = reply.bytes,
		.chunks = reply.chunks,
		.each_bytes = reply.each_bytes,
		.last_bytes = reply.last_bytes,
		.mapped_bytes = reply.each_bytes * (reply.chunks - 1) + reply.last_bytes,
		.conn = conn};
	return i;

err_close:
	if (!*ret_result)
		*ret_result = CUDA_ERROR_INVALID_HANDLE;
	td_ipc_conn_free(conn);
	return NULL;
}

static enum td_denied reason_of(int r)
{
	switch (r) {
	case CUDA_ERROR_MAP_FAILED: return TD_DENIED_NOBODY;
	case CUDA_ERROR_NOT_PERMITTED: return TD_DENIED_USER;
	case CUDA_ERROR_INVALID_HANDLE: return TD_DENIED_FREED;
	default: return TD_DENIED_FAILED;
	}
}

/* Opens a handle that this process has not open yet. The caller holds the lock. */
static int open_new(const struct td_ipc_handle *handle, CUcontext context, struct import **ret)
{
	int r = CUDA_SUCCESS;
	struct import *i = ask_exporter(handle, &r);

	if (!i)
		return r;
	i->context = context;
	r = map(i);
	if (!r && !note_import(i))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		end_import(i);
		return r;
	}
	i->next = imports;
	imports = i;
	*ret = i;
	return CUDA_SUCCESS;
}

static struct import *find_open(const struct td_ipc_handle *handle, const void *context)
{
	struct import *i = imports;

	while (i && (i->context != context || memcmp(&i->handle, handle, sizeof(*handle))))
		i = i->next;
	return i;
}

int td_ipc_open(const CUipcMemHandle *opaque, uint64_t *ret_address)
{
	struct td_ipc_handle handle;
	CUcontext context = NULL;
	struct import *i;
	int r = td_real.cuCtxGetCurrent(&context);

	if (r || !context)
		return r ? r : CUDA_ERROR_INVALID_CONTEXT;
	memcpy(&handle, opaque, sizeof(handle));
	if (td_ipc_is_own(handle.socket))
		/* CUDA does not let a process open its own handle */
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	i = find_open(&handle, context);
	if (!i)
		r = open_new(&handle, context, &i);
	if (!r) {
		i->references++;
		*ret_address = i->address;
	}
	pthread_mutex_unlock(&lock);
	if (r)
		td_shares_deny(reason_of(r));
	return r;
}

/* -- closing -- */

/* Finds an import by its address. The caller holds the lock. */
static struct import **find_address(uint64_t address, const void *context)
{
	struct import **p = &imports;

	while (*p && ((*p)->address != address || (*p)->context != context))
		p = &(*p)->next;
	return p;
}

static bool is_open(uint64_t address, const void *context)
{
	bool open;

	pthread_mutex_lock(&lock);
	open = *find_address(address, context) != NULL;
	pthread_mutex_unlock(&lock);
	return open;
}

int td_ipc_close(uint64_t address, bool *ret_last)
{
	CUcontext context = NULL;
	struct import **at, *i;
	int r;

	*ret_last = false;
	(void)td_real.cuCtxGetCurrent(&context);
	if (!is_open(address, context))
		return TD_BACKEND_NOT_MINE;
	/*
	 * Work that uses the memory ends first, as the driver has it. No lock is held meanwhile,
	 * because that work may need another thread to open or close memory.
	 */
	r = td_real.cuCtxSynchronize();
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	at = find_address(address, context);
	i = *at;
	if (!i)
		r = TD_BACKEND_NOT_MINE; /* another thread has closed it meanwhile */
	else
		*ret_last = !--i->references;
	if (*ret_last) {
		*at = i->next;
		end_import(i);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void td_ipc_context_ends(void *context)
{
	int cancel = td_thread_no_cancel();

	pthread_mutex_lock(&lock);
	for (struct import **p = &imports; *p;) {
		struct import *i = *p;

		if (i->context != context) {
			p = &i->next;
			continue;
		}
		*p = i->next;
		end_import(i);
	}
	pthread_mutex_unlock(&lock);
	td_thread_may_cancel(cancel);
}

int td_ipc_describe(uint64_t address, struct td_swap_info *ret)
{
	const struct td_allocation *row;
	int r = TD_BACKEND_NOT_MINE;

	pthread_mutex_lock(&index_lock);
	row = td_ranges_find(&by_address, address);
	if (row) {
		const struct import *i = row->of;

		r = address - i->address < i->bytes ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
		*ret = (struct td_swap_info){.base = i->address,
			.bytes = i->bytes,
			.id = i->base,
			.mapped_base = i->base,
			.mapped_bytes = i->mapped_bytes,
			.mapped_id = i->base,
			.device = i->device,
			.context = i->context,
			.imported = true};
	}
	pthread_mutex_unlock(&index_lock);
	return r;
}

int td_ipc_holds(uint64_t address, uint64_t bytes)
{
	const struct td_allocation *row;
	int r = TD_BACKEND_NOT_MINE;

	pthread_mutex_lock(&index_lock);
	row = td_ranges_meet(&by_address, address, bytes);
	if (row) {
		const struct import *i = row->of;
		uint64_t at = address - i->address;

		r = at < i->bytes && bytes <= i->bytes - at ? CUDA_SUCCESS
							    : CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&index_lock);
	return r;
}

void td_ipc_import_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&index_lock, NULL);
	imports = NULL;
	memset(&by_address, 0, sizeof(by_address));
}
