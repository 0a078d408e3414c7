/*
 * The exporter's side of shared memory; see ipc.h. A thread, started with the first handle, serves
 * the connections. It calls the driver only to export pinned chunks, and to free memory that the
 * program freed while importers had it open.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/context/marker.h"
#include "preload/driver/real.h"
#include "preload/ipc/ipc.h"
#include "preload/ipc/shares.h"
#include "preload/link/client.h"
#include "preload/link/conn.h"

#define VISITORS_MAX 256
#define PAUSE_MS     10
#define LOOK_MS      1000 /* poll timeout, to notice a listener that the program closed */
#define POSIX_FD     1    /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

struct export
{
	struct export *next;
	uint8_t id[TD_IPC_ID];
	uint64_t address;
	unsigned importers;
	bool freed;
};

struct visitor {
	struct td_conn *conn;
	struct export *export; /* NULL: no request yet */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before td_swap.lock */
/* Guarded by lock. */
static struct export *exports;
static _Atomic bool serving;
static uint8_t name[TD_IPC_ID];
static _Atomic bool exiting;

/* Owned by the thread once it runs. */
static struct td_conn *listeners[TD_IPC_WAYS];
static struct td_shared_file file; /* the socket file at the path */
static struct visitor visitors[VISITORS_MAX];
static unsigned visitor_count;

/* -- functions that need the lock -- */

static struct export **find_export(uint64_t address)
{
	struct export **p = &exports;

	while (*p && (*p)->address != address)
		p = &(*p)->next;
	return p;
}

/* Compares the id in constant time, so that timing does not help to guess it. */
static bool is_id(const struct export *e, const uint8_t id[TD_IPC_ID])
{
	unsigned differs = 0;

	for (unsigned i = 0; i < TD_IPC_ID; i++)
		differs |= e->id[i] ^ id[i];
	return !differs;
}

static struct export *find_id(const uint8_t id[TD_IPC_ID])
{
	struct export *found = NULL;

	for (struct export *e = exports; e; e = e->next)
		if (is_id(e, id) && !e->freed)
			found = e;
	return found;
}

static void count_exports(void)
{
	uint32_t handles = 0, open = 0;

	for (const struct export *e = exports; e; e = e->next) {
		handles += !e->freed;
		open += e->importers;
	}
	td_shares_set(handles, open);
}

/* -- freeing -- */

static void forget_export(struct export **at)
{
	struct export *e = *at;

	*at = e->next;
	td_swap_unpin(e->address);
	free(e);
}

bool td_ipc_keeps(uint64_t address)
{
	struct export **at;
	bool keeps = false;

	pthread_mutex_lock(&lock);
	at = find_export(address);
	if (*at && (*at)->importers)
		(*at)->freed = keeps = true;
	else if (*at)
		forget_export(at);
	count_exports();
	pthread_mutex_unlock(&lock);
	return keeps;
}

bool td_ipc_is_kept(uint64_t address)
{
	bool kept;

	pthread_mutex_lock(&lock);
	kept = *find_export(address) && (*find_export(address))->freed;
	pthread_mutex_unlock(&lock);
	return kept;
}

/* Called when a process that had the memory open is gone. */
static void close_export(struct export *e)
{
	uint64_t address = e->address;
	bool last;

	pthread_mutex_lock(&lock);
	last = !--e->importers && e->freed;
	if (last)
		forget_export(find_export(address));
	count_exports();
	pthread_mutex_unlock(&lock);
	if (last)
		td_swap_release(address);
}

/* -- the thread -- */

static void visitor_leaves(struct visitor *v)
{
	if (v->export)
		close_export(v->export);
	td_ipc_conn_free(v->conn);
	*v = visitors[--visitor_count];
}

/* Sends the chunks' descriptors. The range is pinned and held, so it cannot change meanwhile. */
static int send_chunks(int fd, const struct td_range *range)
{
	int fds[TD_IPC_FDS], r = 0;

	for (size_t first = 0; !r && first < range->count; first += TD_IPC_FDS) {
		unsigned n = 0;

		while (!r && n < TD_IPC_FDS && first + n < range->count) {
			r = td_real.cuMemExportToShareableHandle(
				&fds[n], range->chunks[first + n].handle, POSIX_FD, 0);
			n += !r;
		}
		if (!r)
			r = td_ipc_send(fd, "", 1, fds, n);
		while (n)
			close(fds[--n]);
	}
	return r;
}

static struct td_ipc_reply reply_for(const struct td_range *range, const struct td_swap_info *info)
{
	struct td_ipc_reply reply = {.chunks = (uint32_t)range->count,
		.each_bytes = range->chunks[0].bytes,
		.last_bytes = range->chunks[range->count - 1].bytes,
		.offset = info->base - info->mapped_base,
		.bytes = info->bytes};

	memcpy(reply.magic, td_ipc_magic, sizeof(reply.magic));
	return reply;
}

static int send_export(int fd, struct export *e)
{
	struct td_ipc_reply reply = {.result = CUDA_ERROR_INVALID_HANDLE};
	const struct td_range *range;
	struct td_swap_info info;

	memcpy(reply.magic, td_ipc_magic, sizeof(reply.magic));
	if (!e || td_swap_describe(e->address, &info))
		return td_ipc_send(fd, &reply, sizeof(reply), NULL, 0);
	pthread_mutex_lock(&td_swap.lock);
	range = td_swap_find(e->address);
	pthread_mutex_unlock(&td_swap.lock);
	reply = reply_for(range, &info);
	return td_ipc_send(fd, &reply, sizeof(reply), NULL, 0) || send_chunks(fd, range);
}

/*
 * Serves a connection. Each sends one request; any later packet ends it. Returns false if it is to
 * be closed.
 */
static bool serve_visitor(struct visitor *v)
{
	int fd = atomic_load(&v->conn->fd);
	struct td_ipc_request request;

	if (!td_conn_is_ours(v->conn) || v->export ||
		td_ipc_receive(fd, &request, sizeof(request), NULL, NULL) ||
		memcmp(request.magic, td_ipc_magic, sizeof(request.magic)))
		return false;
	pthread_mutex_lock(&lock);
	v->export = find_id(request.id);
	if (v->export)
		v->export->importers++;
	count_exports();
	pthread_mutex_unlock(&lock);
	return !send_export(fd, v->export) && v->export;
}

static void welcome(const struct td_conn *listener)
{
	struct td_conn *conn;
	int fd = accept4(atomic_load(&listener->fd), NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	/* The program has no free descriptor: pause, as the connection stays pending. */
	if (fd < 0) {
		(void)poll(NULL, 0, PAUSE_MS);
		return;
	}
	if (visitor_count == VISITORS_MAX || !td_ipc_is_same_user(fd)) {
		close(fd);
		return;
	}
	conn = td_ipc_conn_new(fd);
	if (conn)
		visitors[visitor_count++] = (struct visitor){conn, NULL};
}

/*
 * Maps an errno to the reason that the daemon is told. The daemon makes the directory and reports
 * what is wrong.
 */
static enum td_unreachable unreachable(int r)
{
	switch (r) {
	case -ENOENT:
	case -ENOTDIR: return TD_UNREACHABLE_NOWHERE;
	case -EADDRINUSE: return TD_UNREACHABLE_TAKEN;
	default: return r < 0 ? TD_UNREACHABLE_FAILED : TD_UNREACHABLE_NOT;
	}
}

/*
 * Creates the socket again. The directory may appear only with a daemon, and the file may vanish
 * with one. Handles contain the path, so it cannot be changed: if another file has taken it, this
 * is tried again as long as the program runs.
 */
static void listen_again(enum td_ipc_way way)
{
	struct td_conn **listener = &listeners[way];
	int fd;

	if (atomic_load(&exiting))
		return;
	if (*listener && td_conn_is_ours(*listener) &&
		(way != TD_IPC_PATH || td_ipc_is_there(name, &file)))
		return;
	td_ipc_conn_free(*listener);
	*listener = NULL;
	fd = td_ipc_listen(name, way, &file);
	if (way == TD_IPC_PATH)
		td_shares_set_unreachable(unreachable(fd));
	if (fd >= 0)
		*listener = td_ipc_conn_new(fd);
}

static void look_around(void)
{
	struct pollfd fds[VISITORS_MAX + TD_IPC_WAYS];
	unsigned n = visitor_count;

	for (unsigned way = 0; way < TD_IPC_WAYS; way++) {
		listen_again(way);
		fds[n + way] = (struct pollfd){
			listeners[way] ? atomic_load(&listeners[way]->fd) : -1, POLLIN, 0};
	}
	for (unsigned i = 0; i < n; i++)
		fds[i] = (struct pollfd){atomic_load(&visitors[i].conn->fd), POLLIN, 0};
	if (poll(fds, n + TD_IPC_WAYS, LOOK_MS) <= 0)
		return;
	for (unsigned way = 0; way < TD_IPC_WAYS; way++)
		if (fds[n + way].revents & POLLIN && td_conn_is_ours(listeners[way]))
			welcome(listeners[way]);
	/* From the last to the first, because a visitor that leaves is replaced by the last one. */
	for (unsigned i = n; i-- > 0;)
		if (fds[i].revents && !serve_visitor(&visitors[i]))
			visitor_leaves(&visitors[i]);
}

static void *thread_main(void *arg)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)arg;
	td_marker_adopt_internal();
	if (td_real.cuThreadExchangeStreamCaptureMode)
		(void)td_real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;)
		look_around();
	return NULL;
}

/* Starts the thread and the sockets, so that handles can be opened. The caller holds the lock. */
static bool start_listening(void)
{
	if (serving)
		return true;
	if (!td_ipc_random(name))
		return false;
	for (unsigned way = 0; way < TD_IPC_WAYS; way++)
		listen_again(way);
	serving = (listeners[TD_IPC_PATH] || listeners[TD_IPC_ABSTRACT]) &&
		  !td_thread_start(thread_main);
	return serving;
}

/*
 * Connections stay open, because other threads may run until the very end. No lock is taken, since
 * a stopped thread may hold it.
 */
void td_ipc_exiting(void)
{
	atomic_store(&exiting, true);
	if (atomic_load(&serving))
		td_ipc_remove(name);
}

/* -- handles -- */

static void fill_handle(const struct export *e, CUipcMemHandle *ret)
{
	struct td_ipc_handle handle = {0};

	_Static_assert(sizeof(handle) == sizeof(*ret), "a handle has 64 bytes");
	memcpy(handle.magic, td_ipc_magic, sizeof(handle.magic));
	memcpy(handle.socket, name, TD_IPC_ID);
	memcpy(handle.id, e->id, TD_IPC_ID);
	memcpy(ret, &handle, sizeof(*ret));
}

int td_ipc_export(uint64_t address, CUipcMemHandle *ret)
{
	struct export *e = calloc(1, sizeof(*e));
	struct export **at;
	int r = e ? td_swap_pin(address) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r || !td_ipc_random(e->id)) {
		free(e);
		return r ? r : CUDA_ERROR_OPERATING_SYSTEM;
	}
	e->address = address;
	pthread_mutex_lock(&lock);
	at = find_export(address);
	if (*at || !start_listening()) {
		r = *at ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
		td_swap_unpin(address);
		free(e);
	} else {
		*at = e;
	}
	if (!r)
		fill_handle(*at, ret);
	count_exports();
	pthread_mutex_unlock(&lock);
	return r;
}

static void export_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	exports = NULL;
	serving = false;
	atomic_store(&exiting, false);
	memset(listeners, 0, sizeof(listeners));
	memset(&file, 0, sizeof(file));
	visitor_count = 0;
	memset(name, 0, sizeof(name));
}

void td_ipc_forked(void)
{
	td_ipc_conns_forked();
	export_forked();
	td_ipc_import_forked();
}

bool td_ipc_is_own(const uint8_t socket[TD_IPC_ID])
{
	bool own;

	pthread_mutex_lock(&lock);
	own = serving && !memcmp(name, socket, TD_IPC_ID);
	pthread_mutex_unlock(&lock);
	return own;
}
