/*
 * The agent thread: it connects to the daemon, keeps the program running when the daemon is lost,
 * and registers the process's GPUs. plans.c carries out the daemon's plans.
 *
 *   NONE --connect, HELLO--> GREETED --WELCOME + pages--> UP
 *    ^                          |                          |
 *    +------ back-off ----------+------- lost -------------+
 *
 * When the daemon is lost, a private page replaces the shared gate page. A process with an open
 * gate runs on. One with a closed gate waits for a grace time, moves its memory back to the device
 * as far as it fits, and then runs too. HELLO tells the next daemon which of the two we are. While
 * a daemon does not answer HELLO, the program runs without it (client.c). A daemon that falls
 * silent later counts as lost (heartbeat.h).
 *
 * A daemon may send WELCOME and then refuse us repeatedly: the grace time and the back-off start
 * anew only after a connection that has brought ATTACHED or has lasted PROVEN_NS.
 */
#include "preload/agent/agent.h"
#include "preload/base/agent_calls.h"
#include "preload/base/backend.h"
#include "preload/driver/choose.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/time.h"
#include "preload/agent/clean_exit.h"
#include "preload/agent/heartbeat.h"
#include "preload/agent/leave.h"
#include "preload/agent/moves.h"
#include "preload/agent/place.h"
#include "preload/agent/plans.h"
#include "preload/base/futex.h"
#include "preload/base/lock.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/context/drain.h"
#include "preload/context/marker.h"
#include "preload/driver/driver.h"
#include "preload/gate/gate.h"
#include "preload/measure/service.h"
#include "preload/measure/steps.h"
#include "preload/ipc/shares.h"
#include "preload/link/client_internal.h"
#include "preload/link/conn.h"
#include "preload/link/host.h"
#include "proto/proto.h"
#include "proto/socket.h"

#define NEVER          UINT64_MAX
#define BACKOFF_MIN_NS (100 * TD_NS_PER_MS)
#define BACKOFF_MAX_NS (2 * TD_NS_PER_S)
#define HANDSHAKE_NS   (5 * TD_NS_PER_S)
#define PROVEN_NS      (5 * TD_NS_PER_S)
/* A thread waits at most this long for its GPU's registration, should the agent not get to run. */
#define INTRODUCE_MAX_NS (2 * HANDSHAKE_NS)
#define JITTER_NS        (250 * TD_NS_PER_MS)
#define RECHECK_NS       (200 * TD_NS_PER_MS)
#define METER_EVERY_NS   TD_NS_PER_S
/* The agent handles at most this many messages in a row before it does its other work. */
#define BURST 64

enum state {
	STATE_NONE,
	STATE_GREETED,
	STATE_UP,
};

static struct td_lock start_lock = TD_LOCK_INIT(TD_RANK_LIFE);
static bool started; /* guarded by start_lock */

static struct td_bell bell = TD_BELL_NONE;
/* Futex. Bit per slot: the daemon knows the process's GPU in that slot, or there is no daemon. */
static _Atomic uint32_t introduced;

/* The agent thread's state; no other thread uses it. */
static struct {
	enum state state;
	struct td_conn conn;
	uint64_t retry_ns, backoff_ns, handshake_ns;
	uint64_t up_ns;            /* when WELCOME came */
	bool attached_once;        /* this connection has brought ATTACHED */
	bool silent;               /* the daemon accepts connections but does not answer in time */
	uint64_t grace_ns;         /* a closed gate may open then without a daemon; 0: never */
	uint64_t grace_backoff_ns; /* pause between attempts to move all memory back */
	uint8_t ungoverned;        /* enum td_ungoverned, as last told to the daemon */
	bool is_full;              /* the socket's buffer was full: the daemon does not read */
	struct td_heartbeat beat;
	uint8_t kind, reason; /* the backend and the reason for it, as last told to the daemon */
	bool relaxed;         /* relaxed capture mode is set; it cannot be before cuInit */
	bool complained;      /* REJECTED was sent for all invalid settings */
	bool frozen;          /* the process is ending: no message is received any more */
	bool must_unmap;      /* mmap failed: the lost daemon's page is still mapped */
	uint32_t private_word;
	uint32_t asked, attached; /* bit per slot: ATTACH was sent; ATTACHED has come */
	uint64_t metered_ns;
	bool spills[TD_SLOT_MAX];            /* as the last ATTACH said (attach()) */
	uint64_t reserve_bytes[TD_SLOT_MAX]; /* the last daemon's ATTACHED; 0: none */
	uint64_t arrived_ns; /* our job's arrival, from WELCOME; sent in the next HELLO */
} self = {.conn = {-1, 0, 0}};

/* A share of the delays that depends on the pid, so that not all processes reconnect at once. */
static uint64_t jitter_ns(void)
{
	return ((uint64_t)getpid() * 2654435761u >> 8) % JITTER_NS;
}

static void introduce_all(uint32_t slots)
{
	atomic_fetch_or(&introduced, slots);
	td_futex_wake_all(&introduced, false);
}

static void send_msg(const struct td_msg *msg)
{
	int r = td_conn_send(&self.conn, msg);

	/* A daemon that reads no messages is lost; the next receive fails. */
	self.is_full |= r == -EAGAIN;
	if (r < 0)
		td_conn_close(&self.conn);
}

/* -- connection -- */

static void retry_later(uint64_t now_ns)
{
	self.retry_ns = now_ns + self.backoff_ns + jitter_ns() / 8;
	self.backoff_ns *= 2;
	if (self.backoff_ns > BACKOFF_MAX_NS)
		self.backoff_ns = BACKOFF_MAX_NS;
}

static void go_private(void)
{
	self.must_unmap = td_gate_unmap(self.private_word, 0) < 0;
}

/* Without a daemon a thread waits only for a choice of GPUs, and no longer than the grace time. */
static void alone(void)
{
	introduce_all(UINT32_MAX);
	td_place_alone();
}

static void set_silent(bool silent)
{
	self.silent = silent;
	td_client_set_silent(silent);
}

/* The times start anew only if the lost daemon had served us, or at the first loss. */
static void start_grace(uint64_t now_ns, bool waits)
{
	bool proven = self.attached_once || now_ns >= self.up_ns + PROVEN_NS;

	if (proven)
		self.backoff_ns = BACKOFF_MIN_NS;
	if (!waits) {
		self.grace_ns = 0;
	} else if (proven || !self.grace_ns) {
		self.grace_ns = now_ns + td_settings.grace_ns + jitter_ns();
		self.grace_backoff_ns = BACKOFF_MIN_NS;
	}
}

static void lose(uint64_t now_ns, bool silent)
{
	uint32_t word = td_gate_word();
	bool was_up = self.state == STATE_UP, waits = td_plans_was_waiting(word);

	td_conn_close(&self.conn);
	self.state = STATE_NONE;
	self.asked = self.attached = 0;
	if (was_up) {
		self.private_word = waits ? word : 0;
		start_grace(now_ns, waits);
		go_private();
		td_client_connected(false);
		td_host_anew();
		td_plans_reset();
		td_leave_lost();
		td_moves_lost();
		for (unsigned i = 0; i < TD_SLOT_MAX; i++)
			td_client_set_defer(i, waits);
	}
	set_silent(silent);
	td_place_disconnected();
	alone();
	retry_later(now_ns);
}

static void lost(uint64_t now_ns)
{
	lose(now_ns, false);
}

/* Whether the gate is open, and the process has memory on a device or work submitted. */
static bool holds(void)
{
	struct td_memory_stats stats;
	unsigned count = td_context_gpu_count();

	if (td_gate_word() & TD_WORD_CLOSED)
		return false;
	if (td_marker_launches())
		return true;
	for (unsigned i = 0; i < count; i++) {
		td_agent_stats(i, &stats);
		if (stats.resident_bytes)
			return true;
	}
	return false;
}

static void greet(uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_hello};
	struct td_choice choice;
	int r = td_conn_connect(&self.conn, td_settings.socket);

	if (r) {
		lose(now_ns, r == -EAGAIN);
		return;
	}
	msg.hello.pid = (uint32_t)getpid();
	memcpy(msg.hello.job, td_settings.job, sizeof(td_settings.job));
	memcpy(msg.hello.name, td_settings.name, sizeof(td_settings.name));
	msg.hello.class = td_settings.class;
	msg.hello.weight = td_settings.weight;
	msg.hello.upgrade = td_settings.upgrade;
	td_choice_get(&choice);
	msg.hello.backend = self.kind = choice.kind;
	self.reason = TD_BACKEND_NO_REASON;
	msg.hello.holds = holds();
	msg.hello.abi = TD_PAGES_ABI;
	msg.hello.duty_ppm = td_settings.duty_ppm;
	msg.hello.slack_ppm = td_settings.slack_ppm;
	msg.hello.batch = td_settings.batch;
	msg.hello.instance = td_settings.instance;
	memcpy(msg.hello.mem, td_settings.mem, sizeof(td_settings.mem));
	memcpy(msg.hello.mem_soft, td_settings.mem_soft, sizeof(td_settings.mem_soft));
	msg.hello.arrived_ns = self.arrived_ns;
	msg.hello.can = TD_CAN_LEAVE | TD_CAN_MOVE | TD_CAN_SHARE;
	self.state = STATE_GREETED;
	self.is_full = false;
	self.handshake_ns = now_ns + HANDSHAKE_NS;
	send_msg(&msg);
}

static void welcomed(const struct td_msg_welcome *msg, const int *fds, uint64_t now_ns)
{
	if (fds[0] < 0 || fds[1] < 0 || td_gate_map(fds[0], fds[1]) < 0) {
		lost(now_ns);
		return;
	}
	self.state = STATE_UP;
	self.ungoverned = TD_GOVERNED;
	self.arrived_ns = msg->arrived_ns;
	self.must_unmap = false;
	self.up_ns = now_ns;
	self.attached_once = false;
	td_plans_reset();
	td_client_connected(true);
	set_silent(false); /* a thread that waited for the daemon sees it connected */
	td_host_anew();
	td_steps_again();
	td_service_map(fds[1]);
	td_service_again();
	td_shares_again();
	td_moves_again();
	if (td_client_has_waiters())
		td_client_want(td_gate_word());
}

static void attached(const struct td_msg_attached *msg)
{
	uint32_t bit = msg->slot < TD_SLOT_MAX ? 1u << msg->slot : 0;

	if (!(self.asked & bit))
		return;
	self.reserve_bytes[msg->slot] = msg->reserve_bytes;
	td_client_set_capacity(msg->slot, msg->capacity_bytes, msg->quota_bytes, msg->soft_bytes);
	if (self.attached & bit)
		return; /* this ATTACHED only changes the limits */
	self.attached |= bit;
	self.attached_once = true;
	td_plans_attached(msg->slot, true);
	introduce_all(bit);
}

/* A user has changed the job's settings: they are kept for the HELLO to the next daemon. */
static void settings(const struct td_msg_settings *msg)
{
	td_settings.class = msg->class;
	td_settings.weight = msg->weight;
	td_settings.upgrade = msg->upgrade;
	td_settings.duty_ppm = msg->duty_ppm;
	td_settings.slack_ppm = msg->slack_ppm;
	td_settings.batch = msg->batch;
	snprintf(td_settings.mem, sizeof(td_settings.mem), "%.31s", msg->mem);
	snprintf(td_settings.mem_soft, sizeof(td_settings.mem_soft), "%.31s", msg->mem_soft);
}

static void handle(const struct td_msg *msg, const int *fds, uint64_t now_ns)
{
	if (self.state == STATE_GREETED && msg->type == TD_MSG_TYPE_welcome)
		welcomed(&msg->welcome, fds, now_ns);
	else if (self.state == STATE_UP && msg->type == TD_MSG_TYPE_attached)
		attached(&msg->attached);
	else if (self.state == STATE_UP && msg->type == TD_MSG_TYPE_settings)
		settings(&msg->settings);
	else if (self.state == STATE_UP && msg->type == TD_MSG_TYPE_leave)
		td_leave_asked(&msg->leave, send_msg, now_ns);
	else if (self.state == STATE_UP && msg->type == TD_MSG_TYPE_move)
		td_moves_asked(&msg->move, send_msg, now_ns);
	else if (self.state == STATE_UP && msg->type == TD_MSG_TYPE_placed)
		td_place_message(&msg->placed);
	else if (self.state == STATE_UP)
		td_plans_message(msg);
}

static void receive(uint64_t now_ns)
{
	for (int i = 0; i < BURST && self.state != STATE_NONE; i++) {
		int fds[TD_SOCKET_FDS] = {-1, -1};
		struct td_msg msg;
		int r = td_conn_recv(&self.conn, &msg, fds);

		if (r == -EAGAIN)
			return;
		td_heartbeat_heard(&self.beat);
		if (r < 0)
			lose(now_ns, self.is_full);
		else if (r == 0)
			handle(&msg, fds, now_ns);
		/* Messages of unknown type come from a newer daemon and are ignored. */
		for (int f = 0; f < TD_SOCKET_FDS; f++)
			if (fds[f] >= 0)
				close(fds[f]);
	}
}

/* A stopped daemon keeps its connections open: without this check threads would wait for ever. */
static void check_daemon(uint64_t now_ns)
{
	static const struct td_msg ping = {.type = TD_MSG_TYPE_ping};
	bool waits = td_client_is_waiting() || td_host_is_asking();

	switch (td_heartbeat_look(&self.beat, waits, now_ns)) {
	case TD_HEARTBEAT_FINE: break;
	case TD_HEARTBEAT_ASK: send_msg(&ping); break;
	case TD_HEARTBEAT_SILENT: lose(now_ns, true); break;
	}
}

/* -- GPUs -- */

static void attach(unsigned slot, const struct td_gpu_info *gpu)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_attach};

	msg.attach.slot = slot;
	memcpy(msg.attach.gpu, gpu->uuid, sizeof(msg.attach.gpu));
	memcpy(msg.attach.gpu_name, gpu->name, sizeof(gpu->name));
	msg.attach.total_bytes = gpu->total_bytes;
	msg.attach.sm_share_ppm =
		td_moves_share_ppm() ? td_moves_share_ppm() : td_settings.sm_share_ppm;
	/*
	 * The memory in use shows the cost of contexts only if no other process has memory there.
	 * After a daemon's end others do, so we repeat the reserve that the lost daemon had told
	 * us.
	 */
	if (self.reserve_bytes[slot])
		msg.attach.reserve_bytes = self.reserve_bytes[slot];
	else
		msg.attach.used_bytes = gpu->used_bytes;
	/* While the driver would block the question (moves.h) the old answer is sent. */
	if (!td_moves_is_held())
		self.spills[slot] = td_plans_backend() && td_plans_backend()->spills &&
				    td_plans_backend()->spills(gpu->device);
	msg.attach.spills = self.spills[slot];
	msg.attach.mps = td_exit_is_mps(gpu);
	self.asked |= 1u << slot;
	send_msg(&msg);
}

static void detach(unsigned slot)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_detach};

	td_moves_forget_share();
	msg.detach.slot = slot;
	self.asked &= ~(1u << slot);
	self.attached &= ~(1u << slot);
	td_plans_attached(slot, false);
	send_msg(&msg);
}

static void relax_captures(void)
{
	const struct td_driver *driver = td_driver();
	int mode = TD_CUDA_CAPTURE_RELAXED;

	if (driver && !self.relaxed)
		self.relaxed = !driver->thread_exchange_capture_mode(&mode);
}

static void complain(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_rejected};

	for (unsigned i = 0; i < td_settings.rejected_count && !self.complained; i++) {
		snprintf(msg.rejected.setting, sizeof(msg.rejected.setting), "%s",
			td_settings.rejected[i]);
		send_msg(&msg);
	}
	self.complained = true;
}

/* The backend is chosen before a GPU is known: the daemon hears of it before the first ATTACH. */
static void tell_backend(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_backend};
	struct td_choice choice;

	td_choice_get(&choice);
	if (choice.kind == self.kind && choice.reason == self.reason)
		return;
	self.kind = msg.backend.kind = choice.kind;
	self.reason = msg.backend.reason = choice.reason;
	snprintf(msg.backend.library, sizeof(msg.backend.library), "%s", choice.device);
	send_msg(&msg);
}

static void tell_ungoverned(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ungoverned};

	if (self.ungoverned == td_context_ungoverned())
		return;
	self.ungoverned = msg.ungoverned.reason = td_context_ungoverned();
	send_msg(&msg);
}

static void step_gpus(unsigned count)
{
	struct td_gpu_info gpu;

	if (count)
		relax_captures();
	for (unsigned i = 0; i < count; i++) {
		if (!td_context_gpu(i, &gpu))
			continue;
		if (gpu.context && !(self.asked & 1u << i))
			attach(i, &gpu);
		else if (!gpu.context && self.attached & 1u << i)
			detach(i);
		if (!gpu.context && td_moves_is_cancelled(gpu.uuid))
			self.asked &= self.attached | ~(1u << i);
		if (!gpu.context)
			td_client_without_context(i);
	}
	/* A GPU may get a new context before its loss was noticed. It was then never detached. */
	if (self.attached & ~atomic_load(&introduced))
		introduce_all(self.attached);
}

/* -- without a daemon -- */

static uint64_t step_alone(uint64_t now_ns)
{
	if (self.must_unmap)
		go_private();
	if (!self.grace_ns || self.must_unmap)
		return self.must_unmap ? now_ns + BACKOFF_MIN_NS : NEVER;
	if (now_ns < self.grace_ns)
		return self.grace_ns;
	if (td_plans_fill_alone()) {
		self.grace_ns = 0;
		td_gate_write(0);
		return NEVER;
	}
	self.grace_ns = now_ns + self.grace_backoff_ns;
	self.grace_backoff_ns *= 2;
	if (self.grace_backoff_ns > BACKOFF_MAX_NS)
		self.grace_backoff_ns = BACKOFF_MAX_NS;
	return self.grace_ns;
}

/* -- steps -- */

/* Steps are sent at once if a policy uses them; otherwise once a second, with `rest`. */
static void send_steps(bool rest)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_step};
	struct td_steps steps;

	if (!rest && !td_gate_wants_steps())
		return;
	if (!td_steps_take(&steps))
		return;
	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		if (td_steps_memory_is_new(i))
			td_client_memory_changed(i);
	msg.step.steps = steps.count;
	msg.step.step_ns = steps.step_ns;
	msg.step.began_ns = steps.began_ns;
	msg.step.median_ns = steps.median_ns;
	msg.step.unit = steps.unit;
	msg.step.sure_ppm = steps.sure_ppm;
	send_msg(&msg);
}

/* -- the service -- */

static void send_service(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_service};
	struct td_service_told told;

	if (!td_service_take(&told))
		return;
	memcpy(msg.service.name, told.name, sizeof(told.name));
	msg.service.objective_ns = told.objective_ns;
	msg.service.batch_max = told.batch_max;
	send_msg(&msg);
}

/* -- the loop -- */

static uint64_t step(uint64_t now_ns)
{
	uint64_t next_ns = now_ns + METER_EVERY_NS;
	bool meter = now_ns >= self.metered_ns + METER_EVERY_NS;
	unsigned gpus;

	self.frozen = td_exit_step(self.state == STATE_UP ? send_msg : NULL);
	if (self.frozen)
		return next_ns;
	if (self.state == STATE_UP)
		td_plans_close(now_ns);
	if (self.state == STATE_NONE && now_ns >= self.retry_ns)
		greet(now_ns);
	receive(now_ns);
	if (self.state == STATE_UP)
		check_daemon(now_ns);
	if (self.state == STATE_GREETED && now_ns >= self.handshake_ns && !self.silent)
		set_silent(true);
	if (meter)
		td_choose_look();
	/* The backend is chosen before a GPU is known, so it is told before the first ATTACH. */
	gpus = td_context_gpu_count();
	td_exit_look(gpus, meter);
	if (self.state == STATE_UP) {
		tell_backend();
		complain();
		td_place_step(send_msg);
		step_gpus(gpus);
		/* The messages below name GPUs of the process, so their ATTACH comes first. */
		tell_ungoverned();
		send_steps(meter);
		send_service();
		td_moves_step(send_msg, meter);
		td_shares_step(send_msg);
		next_ns = td_min_u64(next_ns, td_plans_step(now_ns));
	}
	next_ns = td_min_u64(next_ns, td_leave_step(now_ns));
	if (self.state == STATE_NONE || self.silent) {
		alone();
		next_ns = td_min_u64(next_ns, step_alone(now_ns));
	}
	if (self.state == STATE_NONE)
		next_ns = td_min_u64(next_ns, self.retry_ns);
	if (self.state == STATE_GREETED && !self.silent)
		next_ns = td_min_u64(next_ns, self.handshake_ns);
	if (meter) {
		td_plans_trim_idle();
		self.metered_ns = now_ns;
		atomic_store_explicit(
			&td_meter.page.launches, td_marker_launches(), memory_order_relaxed);
	}
	return next_ns;
}

static void wait_until(uint64_t next_ns)
{
	uint64_t now_ns = td_time_now_ns(), wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
	struct timespec timeout = {(time_t)(wait_ns / TD_NS_PER_S), (long)(wait_ns % TD_NS_PER_S)};
	struct pollfd fds[2];

	/* A program that closes all descriptors closes the bell too: make a new one. */
	if (!td_conn_is_ours(&bell.out) || !td_conn_is_ours(&bell.in)) {
		td_bell_deinit(&bell);
		(void)td_bell_init(&bell);
	}
	fds[0] = (struct pollfd){atomic_load(&bell.out.fd), POLLIN, 0};
	fds[1] = (struct pollfd){-1, POLLIN, 0};
	if (!self.frozen && td_conn_is_ours(&self.conn))
		fds[1].fd = atomic_load(&self.conn.fd);
	(void)ppoll(fds, 2, &timeout, NULL);
	if (fds[0].revents)
		td_bell_quiet(&bell);
}

static void *agent_main(void *arg)
{
	(void)arg;
	td_marker_adopt_internal();
	for (;;)
		wait_until(step(td_time_now_ns()));
	return NULL;
}

bool td_agent_start(void)
{
	td_lock_take(&start_lock);
	if (!started && td_settings.socket[0]) {
		self.backoff_ns = BACKOFF_MIN_NS;
		td_plans_init(send_msg);
		(void)td_bell_init(&bell); /* if it fails, the agent wakes by its time-outs */
		started = !td_thread_start(agent_main);
	}
	td_lock_drop(&start_lock);
	if (started)
		td_agent_wake();
	return started;
}

void td_agent_expect(unsigned slot)
{
	atomic_fetch_and(&introduced, ~(1u << slot));
}

void td_agent_await(unsigned slot)
{
	uint64_t deadline_ns;
	uint32_t seen = atomic_load(&introduced);

	if (seen & 1u << slot)
		return;
	deadline_ns = td_time_now_ns() + INTRODUCE_MAX_NS;
	while (!((seen = atomic_load(&introduced)) & 1u << slot) && td_time_now_ns() < deadline_ns)
		td_futex_wait(&introduced, seen, RECHECK_NS, false);
	/* If the agent does not get to run, only the first call waits so long. */
	if (!(seen & 1u << slot))
		introduce_all(1u << slot);
}

void td_agent_introduce(unsigned slot)
{
	if (!td_agent_start()) {
		introduce_all(1u << slot);
		return;
	}
	td_agent_await(slot);
}

void td_agent_wake(void)
{
	td_bell_ring(&bell);
}

void td_agent_set_backend(const struct td_backend *backend)
{
	td_plans_set_backend(backend);
}

const struct td_backend *td_agent_backend(void)
{
	return td_plans_backend();
}

void td_agent_exiting(void)
{
	td_plans_exiting();
}

void td_agent_forked(void)
{
	td_conn_close(&self.conn);
	td_bell_deinit(&bell);
	memset(&self, 0, sizeof(self));
	atomic_store(&self.conn.fd, -1);
	td_lock_reset(&start_lock);
	started = false;
	atomic_store(&introduced, 0);
	td_plans_reset();
	td_leave_forked();
	td_moves_forked();
	td_place_forked();
	td_shares_forked();
}
