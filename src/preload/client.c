/*
 * The agent thread and what it knows. See client.h for the states and proto/messages.def for the conversation.
 *
 * Invariants
 *  - `closed` means: the word was closed, no thread is inside, the device is drained. It is set before DRAINED is sent and cleared before
 *    READY is sent (the daemon may open the gate from then on).
 *  - memory moves only in the agent thread: shrinks while closed, fills before READY.
 *  - nobody waits for the daemon for ever: when the connection is lost every waiter goes on.
 *
 * Locks: state.lock guards state and is never held across driver calls or waits, other than condition waits on it.
 */
#include "preload/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "policy/policy.h"
#include "preload/drain.h"
#include "preload/gate.h"
#include "preload/real.h"
#include "proto/proto.h"
#include "proto/socket.h"

#define MS             1000000ull
#define CONTEXTS_MAX   64
#define AGENT_STACK    (256 * 1024)
#define HANDSHAKE_MS   1000
#define FLUSH_NS       (1000 * MS)
#define IDLE_NS        (3 * MS)
#define GRACE_NS       (2000 * MS)
#define RETRY_FILL_NS  (2 * MS)
#define BACKOFF_MIN_NS (100 * MS)
#define BACKOFF_MAX_NS (2000 * MS)
#define NEVER          UINT64_MAX

struct gpu {
	CUdevice device;
	uint8_t uuid[16];
	char name[64];
	uint64_t total_bytes, used_bytes;
	uint64_t capacity_bytes; /* as the daemon says; 0 while it has not */
	CUcontext context;       /* in which the agent works */
	bool dirty;              /* its totals changed */
	/* the last plan */
	uint32_t seq;
	uint8_t gate;
	bool planned, ready_sent;
	_Atomic uint64_t limit_bytes;
	/* an allocation waits for an answer */
	bool asking, answered;
	uint64_t asked_bytes,
		pending_bytes; /* pending: granted, and not yet in the backend's totals */
	uint8_t granted;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_mutex_t asking; /* one NEED at a time; taken before lock */
	struct gpu gpus[TD_SLOT_MAX];
	unsigned gpu_count;
	struct {
		CUcontext context;
		unsigned slot;
	} contexts[CONTEXTS_MAX];
	unsigned context_count;
	bool started;
	int fd, wake_fd;
	_Atomic int send_fd; /* fd for threads that send without the lock; -1 while alone */
	const struct td_backend *backend;
	/* the agent's own */
	bool closed, others_wait, stuck;
	uint64_t idle_mark, idle_since_ns;
	bool idle_probing, idle_sent;
	uint64_t grace_ns, fill_ns, reconnect_ns, backoff_ns;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.asking = PTHREAD_MUTEX_INITIALIZER,
	.fd = -1,
	.send_fd = -1,
	.wake_fd = -1};

static _Thread_local int my_slot __attribute__((tls_model("initial-exec"))) = -1;
static _Atomic unsigned captures;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void wake_agent(void)
{
	uint64_t one = 1;

	(void)!write(state.wake_fd, &one, sizeof(one));
}

/* A packet that cannot be sent means that the connection is lost; the agent will see that by itself. */
static void post(const struct td_msg *msg)
{
	int fd = atomic_load(&state.send_fd);

	if (fd >= 0)
		(void)td_socket_send(fd, msg, NULL, 0);
}

static const char *setting(const char *name, const char *otherwise)
{
	const char *text = getenv(name);

	return text && *text ? text : otherwise;
}

static int index_of(const char *text, const char *const *words, int count, int otherwise)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(text, words[i]))
			return i;
	return otherwise;
}

static enum td_backend_kind backend_kind(void)
{
	static const char *const names[] = {"plain", "swap", "managed"};

	return (enum td_backend_kind)index_of(
		setting("TANDEM_BACKEND", "plain"), names, TD_BACKEND_N, TD_BACKEND_PLAIN);
}

const struct td_backend *td_client_backend(void)
{
	static const struct td_backend *const backends[] = {
		&td_backend_plain, &td_backend_swap, &td_backend_managed};

	if (!state.backend)
		state.backend = backends[backend_kind()];
	return state.backend;
}

/* -- registration -- */

static void say_hello(struct td_msg *msg)
{
	static const char *const classes[] = {"online", "guaranteed", "besteffort"};

	memset(msg, 0, sizeof(*msg));
	msg->type = TD_MSG_TYPE_hello;
	msg->hello.pid = (uint32_t)getpid();
	strncpy(msg->hello.job, setting("TANDEM_JOB", ""), 63);
	strncpy(msg->hello.name, setting("TANDEM_NAME", program_invocation_short_name), 63);
	msg->hello.class = (uint8_t)index_of(
		setting("TANDEM_CLASS", "besteffort"), classes, 3, TD_CLASS_BESTEFFORT);
	msg->hello.weight = (uint32_t)atoi(setting("TANDEM_WEIGHT", "1"));
	msg->hello.backend = (uint8_t)backend_kind();
	msg->hello.holds = state.gpu_count && !state.closed;
}

/* 0 with the daemon's page mapped over the gate's, or -errno. */
static int connect_daemon(void)
{
	const struct timeval patience = {HANDSHAKE_MS / 1000, HANDSHAKE_MS % 1000 * 1000};
	char path[256];
	struct td_msg msg;
	int fds[TD_SOCKET_FDS] = {-1, -1}, fd, r;

	if (!td_socket_path(path, sizeof(path)))
		return -ENAMETOOLONG;
	fd = td_socket_connect(path);
	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	say_hello(&msg);
	r = td_socket_send(fd, &msg, NULL, 0);
	if (!r)
		r = td_socket_recv(fd, &msg, fds, 0);
	if (!r && (msg.type != TD_MSG_TYPE_welcome || fds[0] < 0))
		r = -EPROTO;
	if (!r)
		r = td_gate_map(fds[0], 0);
	for (int i = 0; i < TD_SOCKET_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (r) {
		close(fd);
		return r < 0 ? r : -EPROTO;
	}
	state.fd = fd;
	atomic_store(&state.send_fd, fd);
	if (!state.gpu_count)
		state.closed = true; /* a newcomer holds nothing: its page says closed */
	return 0;
}

/*
 * A newcomer says what is in use on the device. One that comes back cannot: others that are yet to come back have memory there; it says
 * what the lost daemon had told it to leave.
 */
static void send_attach(unsigned slot)
{
	const struct gpu *gpu = &state.gpus[slot];
	struct td_msg msg = {.type = TD_MSG_TYPE_attach};

	msg.attach.slot = slot;
	memcpy(msg.attach.gpu, gpu->uuid, 16);
	memcpy(msg.attach.gpu_name, gpu->name, sizeof(gpu->name));
	msg.attach.total_bytes = gpu->total_bytes;
	if (gpu->capacity_bytes)
		msg.attach.reserve_bytes = gpu->total_bytes - gpu->capacity_bytes;
	else
		msg.attach.used_bytes = gpu->used_bytes;
	post(&msg);
}

static void send_memory(unsigned slot)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_memory};
	struct td_memory_stats stats;

	uint64_t pending;

	pthread_mutex_lock(&state.lock);
	pending = state.gpus[slot].pending_bytes;
	state.backend->stats(slot, &stats);
	pthread_mutex_unlock(&state.lock);
	msg.memory.slot = slot;
	msg.memory.seq = state.gpus[slot].seq;
	msg.memory.demanded_bytes = stats.demanded_bytes + pending;
	msg.memory.resident_bytes = stats.resident_bytes;
	msg.memory.host_bytes = stats.host_bytes;
	msg.memory.peak_bytes = stats.peak_bytes;
	msg.memory.in_bytes = stats.in_bytes;
	msg.memory.out_bytes = stats.out_bytes;
	msg.memory.swap_ns = stats.move_ns;
	post(&msg);
}

/* -- carrying plans out (agent thread) -- */

static void enter_context(unsigned slot)
{
	(void)td_real.cuCtxSetCurrent(state.gpus[slot].context);
}

static uint64_t drain_deadline_ns(void)
{
	return (uint64_t)atoll(setting("TANDEM_DRAIN_DEADLINE_MS", "10000")) * MS;
}

/* The word is closed already. True: drained. */
static bool close_gate(void)
{
	uint64_t began = now_ns(), deadline = began + drain_deadline_ns(), frozen;
	struct td_msg msg = {.type = TD_MSG_TYPE_drained};
	CUcontext contexts[CONTEXTS_MAX];
	unsigned count;

	pthread_mutex_lock(&state.lock);
	count = state.context_count;
	for (unsigned i = 0; i < count; i++)
		contexts[i] = state.contexts[i].context;
	pthread_mutex_unlock(&state.lock);
	if (!td_gate_flush(FLUSH_NS) || (frozen = now_ns(), !td_drain(contexts, count, deadline))) {
		msg.type = TD_MSG_TYPE_stuck;
		msg.stuck.waited_ns = now_ns() - began;
		post(&msg);
		return false;
	}
	state.closed = true;
	msg.drained.launches = td_gate_submissions();
	msg.drained.frozen_ns = frozen;
	msg.drained.drained_ns = now_ns();
	post(&msg);
	return true;
}

static void progress(unsigned slot)
{
	send_memory(slot);
}

/* Brings memory back; the gate may open when every GPU of the process is ready. */
static void fill(void)
{
	bool all = true;

	state.fill_ns = NEVER;
	for (unsigned slot = 0; slot < state.gpu_count; slot++) {
		struct gpu *gpu = &state.gpus[slot];
		struct td_msg msg = {.type = TD_MSG_TYPE_ready};
		int r;

		if (!gpu->planned || gpu->gate == TD_GATE_CLOSED)
			return;
		enter_context(slot);
		r = state.backend->fill(slot, atomic_load(&gpu->limit_bytes), progress);
		send_memory(slot);
		if (r) {
			/* More limit will come with a plan; room on the device may come without one. */
			state.fill_ns = now_ns() + RETRY_FILL_NS;
			all = false;
			continue;
		}
		msg.ready.slot = slot;
		msg.ready.seq = gpu->seq;
		state.closed = false;
		post(&msg);
	}
	if (all)
		state.stuck = false;
}

static void shrink(unsigned slot)
{
	enter_context(slot);
	(void)state.backend->shrink(slot, atomic_load(&state.gpus[slot].limit_bytes), progress);
	send_memory(slot);
}

static void on_plan(const struct td_msg_plan *plan)
{
	struct gpu *gpu;

	if (plan->slot >= state.gpu_count)
		return;
	gpu = &state.gpus[plan->slot];
	gpu->planned = true;
	gpu->seq = plan->seq;
	gpu->gate = plan->gate;
	atomic_store(&gpu->limit_bytes, plan->limit_bytes);
	if (state.others_wait != (plan->others_wait != 0)) {
		state.others_wait = plan->others_wait;
		state.idle_since_ns = 0;
		state.idle_probing = state.idle_sent = false;
	}
	if (plan->gate == TD_GATE_CLOSED) {
		if (state.closed || close_gate())
			shrink(plan->slot);
	} else if (state.closed) {
		fill();
	} else {
		/* Open already, or a renewed plan before it opens: READY answers each. */
		struct td_msg msg = {.type = TD_MSG_TYPE_ready};

		send_memory(plan->slot);
		msg.ready.slot = plan->slot;
		msg.ready.seq = plan->seq;
		post(&msg);
	}
}

static void on_attached(const struct td_msg_attached *msg)
{
	pthread_mutex_lock(&state.lock);
	if (msg->slot < state.gpu_count)
		state.gpus[msg->slot].capacity_bytes = msg->capacity_bytes;
	pthread_cond_broadcast(&state.changed);
	pthread_mutex_unlock(&state.lock);
}

static void on_answer(const struct td_msg_answer *msg)
{
	pthread_mutex_lock(&state.lock);
	if (msg->slot < state.gpu_count && state.gpus[msg->slot].asking) {
		state.gpus[msg->slot].answered = true;
		state.gpus[msg->slot].granted = msg->granted;
		if (msg->granted)
			state.gpus[msg->slot].pending_bytes += state.gpus[msg->slot].asked_bytes;
	}
	pthread_cond_broadcast(&state.changed);
	pthread_mutex_unlock(&state.lock);
}

/* The daemon is gone: who holds goes on, who waits gets a grace time; everybody who waits for an answer goes on. */
static void lose(void)
{
	pthread_mutex_lock(&state.lock);
	atomic_store(&state.send_fd, -1);
	close(state.fd);
	state.fd = -1;
	pthread_cond_broadcast(&state.changed);
	pthread_mutex_unlock(&state.lock);
	(void)td_gate_map(-1, state.closed ? TD_WORD_CLOSED | TD_WORD_STEP : 0);
	state.others_wait = false;
	state.fill_ns = NEVER;
	state.grace_ns =
		state.closed ? now_ns() + GRACE_NS + (uint64_t)getpid() % 64 * 8 * MS : NEVER;
	state.backoff_ns = BACKOFF_MIN_NS;
	state.reconnect_ns = now_ns() + state.backoff_ns;
}

static void read_socket(void)
{
	struct td_msg msg;

	for (;;) {
		int r = td_socket_recv(state.fd, &msg, NULL, MSG_DONTWAIT);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			lose();
			return;
		}
		if (r == TD_PROTO_UNKNOWN)
			continue;
		if (msg.type == TD_MSG_TYPE_plan)
			on_plan(&msg.plan);
		else if (msg.type == TD_MSG_TYPE_attached)
			on_attached(&msg.attached);
		else if (msg.type == TD_MSG_TYPE_answer)
			on_answer(&msg.answer);
	}
}

static void reconnect(void)
{
	struct td_msg want = {.type = TD_MSG_TYPE_want};

	if (connect_daemon()) {
		state.backoff_ns = state.backoff_ns * 2 < BACKOFF_MAX_NS ? state.backoff_ns * 2
									 : BACKOFF_MAX_NS;
		state.reconnect_ns = now_ns() + state.backoff_ns;
		return;
	}
	state.reconnect_ns = state.grace_ns = NEVER;
	for (unsigned slot = 0; slot < state.gpu_count; slot++) {
		state.gpus[slot].planned = false;
		state.gpus[slot].seq = 0;
		send_attach(slot);
		send_memory(slot);
	}
	/* Threads may have waited through the daemon's death; whether they still do is not known here. */
	post(&want);
}

/* Grace is over and no daemon is back: go on as soon as the memory fits. */
static void go_on_alone(void)
{
	for (unsigned slot = 0; slot < state.gpu_count; slot++) {
		enter_context(slot);
		if (state.backend->fill(slot, UINT64_MAX, progress)) {
			state.grace_ns = now_ns() + 50 * MS;
			return;
		}
	}
	state.grace_ns = NEVER;
	state.closed = false;
	(void)td_gate_map(-1, 0);
}

/*
 * While others wait: idle means that nothing was submitted for IDLE_NS and what was submitted has ended. Returns when to look again.
 */
static uint64_t watch_idleness(uint64_t now)
{
	uint64_t submissions = td_gate_submissions();
	struct td_msg msg = {.type = TD_MSG_TYPE_idle};

	if (!state.others_wait || state.closed || state.fd < 0)
		return NEVER;
	if (!state.idle_since_ns || submissions != state.idle_mark) {
		if (state.idle_sent) {
			struct td_msg want = {.type = TD_MSG_TYPE_want};

			post(&want); /* busy again before the daemon has acted */
		}
		state.idle_mark = submissions;
		state.idle_since_ns = now;
		state.idle_probing = state.idle_sent = false;
	}
	if (state.idle_sent)
		return now + IDLE_NS;
	if (now - state.idle_since_ns < IDLE_NS)
		return state.idle_since_ns + IDLE_NS;
	if (!state.idle_probing) {
		CUcontext contexts[CONTEXTS_MAX];
		unsigned count;

		pthread_mutex_lock(&state.lock);
		count = state.context_count;
		for (unsigned i = 0; i < count; i++)
			contexts[i] = state.contexts[i].context;
		pthread_mutex_unlock(&state.lock);
		state.idle_probing = td_drain_begin(contexts, count);
		return now + MS;
	}
	if (!td_drain_ended())
		return now + MS;
	/* The probe ended just now or up to 1 ms ago; work that ended much later than its submission counts as busy until then. */
	state.idle_sent = true;
	msg.idle.launches = submissions;
	msg.idle.since_ns = td_drain_ended_ns() > state.idle_since_ns + IDLE_NS + MS
				    ? td_drain_ended_ns()
				    : state.idle_since_ns;
	post(&msg);
	return now + IDLE_NS;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void send_dirty(void)
{
	for (unsigned slot = 0; slot < state.gpu_count; slot++) {
		bool dirty;

		pthread_mutex_lock(&state.lock);
		dirty = state.gpus[slot].dirty;
		state.gpus[slot].dirty = false;
		pthread_mutex_unlock(&state.lock);
		if (dirty)
			send_memory(slot);
	}
}

static void *serve(void *arg)
{
	(void)arg;
	td_gate_own_thread();
	for (;;) {
		uint64_t now = now_ns(), next = watch_idleness(now);
		struct pollfd fds[2] = {{state.wake_fd, POLLIN, 0}, {state.fd, POLLIN, 0}};
		struct timespec timeout;
		uint64_t ticks;

		next = earlier(
			next, earlier(state.fill_ns, earlier(state.grace_ns, state.reconnect_ns)));
		next = next == NEVER ? 1000000 * MS : next > now ? next - now : 0;
		timeout =
			(struct timespec){(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
		if (ppoll(fds, state.fd >= 0 ? 2 : 1, &timeout, NULL) < 0 && errno != EINTR)
			return NULL;
		if (fds[0].revents && read(state.wake_fd, &ticks, sizeof(ticks)) < 0)
			return NULL;
		send_dirty();
		if (state.fd >= 0 && fds[1].revents)
			read_socket();
		now = now_ns();
		if (state.fd >= 0 && state.fill_ns <= now)
			fill();
		if (state.fd < 0 && state.grace_ns <= now)
			go_on_alone();
		if (state.fd < 0 && state.reconnect_ns <= now)
			reconnect();
	}
}

/* state.lock is held. */
static void start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	state.started = true;
	(void)td_client_backend();
	state.grace_ns = state.fill_ns = state.reconnect_ns = NEVER;
	state.backoff_ns = BACKOFF_MIN_NS;
	state.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (connect_daemon())
		state.reconnect_ns = now_ns() + state.backoff_ns;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, AGENT_STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, &attributes, serve, NULL)) {
		/* Without an agent nobody could answer the daemon: we are alone for good. */
		if (state.fd >= 0)
			close(state.fd);
		state.fd = -1;
		atomic_store(&state.send_fd, -1);
		state.closed = false;
		(void)td_gate_map(-1, 0);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

/* -- contexts (the program's threads) -- */

/* state.lock is held. The slot of the GPU, new if need be; -1: too many. Attaching waits for the daemon's answer, but not for long. */
static int find_gpu(CUdevice device, CUcontext context)
{
	struct timespec deadline;
	struct gpu *gpu;
	size_t total = 0, free_bytes = 0, seen = 0;

	for (unsigned i = 0; i < state.gpu_count; i++)
		if (state.gpus[i].device == device)
			return (int)i;
	if (state.gpu_count == TD_SLOT_MAX)
		return -1;
	gpu = &state.gpus[state.gpu_count];
	memset(gpu, 0, sizeof(*gpu));
	gpu->device = device;
	gpu->context = context;
	(void)td_real.cuDeviceGetUuid((CUuuid *)gpu->uuid, device);
	(void)td_real.cuDeviceGetName(gpu->name, sizeof(gpu->name), device);
	(void)td_real.cuDeviceTotalMem_v2(&total, device);
	gpu->total_bytes = total;
	if (!td_real.cuMemGetInfo_v2(&free_bytes, &seen) && seen > free_bytes)
		gpu->used_bytes = seen - free_bytes;
	atomic_store(&gpu->limit_bytes, 0);
	state.gpu_count++;
	send_attach(state.gpu_count - 1);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += HANDSHAKE_MS / 1000;
	while (atomic_load(&state.send_fd) >= 0 && !gpu->capacity_bytes)
		if (pthread_cond_timedwait(&state.changed, &state.lock, &deadline))
			break;
	return (int)(gpu - state.gpus);
}

bool td_client_use_context(void)
{
	CUcontext context = NULL;
	CUdevice device;

	if (td_gate_disabled() || td_real_load() || !td_real.cuCtxGetCurrent ||
		td_real.cuCtxGetCurrent(&context) || !context || td_real.cuCtxGetDevice(&device))
		return false;
	pthread_mutex_lock(&state.lock);
	my_slot = -1;
	for (unsigned i = 0; i < state.context_count; i++)
		if (state.contexts[i].context == context)
			my_slot = (int)state.contexts[i].slot;
	if (my_slot < 0) {
		if (!state.started)
			start();
		my_slot = find_gpu(device, context);
		if (my_slot >= 0 && state.context_count < CONTEXTS_MAX) {
			state.contexts[state.context_count].context = context;
			state.contexts[state.context_count++].slot = (unsigned)my_slot;
		}
	}
	pthread_mutex_unlock(&state.lock);
	return my_slot >= 0;
}

int td_client_slot(void)
{
	if (my_slot < 0)
		(void)td_client_use_context();
	return my_slot;
}

void td_client_context_changed(void)
{
	my_slot = -1;
	if (td_slot_mine)
		td_slot_mine->has_context = false;
}

void td_client_context_gone(CUcontext context)
{
	pthread_mutex_lock(&state.lock);
	for (unsigned i = 0; i < state.context_count; i++) {
		if (state.contexts[i].context != context)
			continue;
		state.contexts[i] = state.contexts[--state.context_count];
		i--;
	}
	for (unsigned slot = 0; slot < state.gpu_count; slot++)
		for (unsigned i = 0; state.gpus[slot].context == context && i < state.context_count;
			i++)
			if (state.contexts[i].slot == slot)
				state.gpus[slot].context = state.contexts[i].context;
	pthread_mutex_unlock(&state.lock);
	td_client_context_changed();
}

uint64_t td_client_capacity(unsigned slot)
{
	return slot < state.gpu_count ? state.gpus[slot].capacity_bytes : 0;
}

/* -- what threads ask -- */

void td_client_want(uint32_t word)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_want};

	msg.want.word = word;
	post(&msg);
}

bool td_client_is_alone(void)
{
	return atomic_load(&state.send_fd) < 0;
}

void td_client_memory_changed(unsigned slot)
{
	pthread_mutex_lock(&state.lock);
	state.gpus[slot].dirty = true;
	state.gpus[slot].pending_bytes = 0;
	pthread_mutex_unlock(&state.lock);
	if (state.wake_fd >= 0)
		wake_agent();
}

void td_client_memory_freed(unsigned slot)
{
	pthread_mutex_lock(&state.lock);
	state.gpus[slot].dirty = true;
	pthread_mutex_unlock(&state.lock);
	if (state.wake_fd >= 0)
		wake_agent();
}

int td_client_need(unsigned slot, uint64_t bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_need};
	struct gpu *gpu = &state.gpus[slot];
	struct td_memory_stats stats;
	int r;

	if (atomic_load(&state.send_fd) < 0)
		return state.closed ? 2 : 0;
	pthread_mutex_lock(&state.asking);
	pthread_mutex_lock(&state.lock);
	state.backend->stats(slot, &stats);
	if (!state.closed && stats.demanded_bytes + gpu->pending_bytes + bytes <=
				     atomic_load(&gpu->limit_bytes)) {
		gpu->pending_bytes += bytes;
		pthread_mutex_unlock(&state.lock);
		pthread_mutex_unlock(&state.asking);
		return 0;
	}
	gpu->asked_bytes = bytes;
	gpu->asking = true;
	gpu->answered = false;
	msg.need.slot = slot;
	msg.need.bytes = bytes;
	post(&msg);
	while (atomic_load(&state.send_fd) >= 0 && !gpu->answered)
		pthread_cond_wait(&state.changed, &state.lock);
	if (gpu->answered)
		r = gpu->granted == 1 ? 0 : gpu->granted == 2 ? 2 : 1;
	else
		r = state.closed
			    ? 2
			    : 0; /* the daemon is gone: what is closed is filled when it goes on */
	gpu->asking = false;
	pthread_mutex_unlock(&state.lock);
	pthread_mutex_unlock(&state.asking);
	return r;
}

unsigned td_client_captures(void)
{
	return atomic_load_explicit(&captures, memory_order_relaxed);
}

void td_client_capture_began(void)
{
	atomic_fetch_add(&captures, 1);
}

void td_client_capture_ended(void)
{
	unsigned n = atomic_load(&captures);

	while (n && !atomic_compare_exchange_weak(&captures, &n, n - 1))
		;
}

/* -- fork: the child has no agent, no connection and no context -- */

static void before_fork(void)
{
	pthread_mutex_lock(&state.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&state.lock);
}

static void in_child(void)
{
	if (state.fd >= 0)
		close(state.fd);
	if (state.wake_fd >= 0)
		close(state.wake_fd);
	state.fd = state.wake_fd = -1;
	atomic_store(&state.send_fd, -1);
	state.started = state.closed = state.others_wait = false;
	state.gpu_count = state.context_count = 0;
	my_slot = -1;
	atomic_store(&captures, 0);
	td_gate_forked();
	td_drain_forked();
	if (state.backend)
		state.backend->forked();
	pthread_mutex_init(&state.asking, NULL);
	pthread_mutex_unlock(&state.lock);
}

__attribute__((constructor)) static void prepare(void)
{
	td_libc_find();
	pthread_atfork(before_fork, in_parent, in_child);
}
