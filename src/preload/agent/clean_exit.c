/* Ends a client of MPS in the stages that clean_exit.h draws. */
#include "preload/agent/clean_exit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/agent/moves.h"
#include "preload/base/agent_calls.h"
#include "preload/base/caught.h"
#include "preload/base/futex.h"
#include "preload/base/page.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/context/drain.h"
#include "preload/context/marker.h"
#include "preload/driver/driver.h"
#include "preload/gate/gate.h"
#include "proto/proto.h"

/*
 * Bounds of the stages. Their sum must stay below the time after which a supervisor sends SIGKILL:
 * 10 s for Docker, 30 s for Kubernetes and Slurm.
 */
#define FREEZE_NS TD_NS_PER_S /* the agent may be inside a driver call */
#define DRAIN_NS  (3 * TD_NS_PER_S)
/* The bound of DRAIN in exit(). The driver ends what remains by itself. */
#define EXIT_NS (2 * TD_NS_PER_S)
/*
 * How long DESTROY may take once no work runs. This is short, since the MPS server is safe by then,
 * and one of the stopped threads may hold a lock that the driver needs.
 */
#define DESTROY_NS (250 * TD_NS_PER_MS)
#define TELL_NS    TD_NS_PER_S
/*
 * If work has not ended, the process waits this long for the daemon to have the MPS server release
 * it (terminate_client).
 */
#define LAST_NS (5 * TD_NS_PER_S)
/* A thread that td_exit_waited keeps waits for this long: more than all stages together. */
#define KEPT_NS      (20 * TD_NS_PER_S)
#define PAUSE_MIN_NS (50 * TD_NS_PER_US)
#define PAUSE_MAX_NS (2 * TD_NS_PER_MS)
#define IDLE_NS      TD_NS_PER_S
#define NEVER_NS     (3600 * TD_NS_PER_S)
#define NEVER_SET    UINT32_MAX

/*
 * Requests to the agent are bits of `asked`. The agent sets the same bit of `done` when it is
 * through.
 */
#define FREEZE 1u
#define TELL   2u
static _Atomic uint32_t asked, done;
static _Atomic bool drained; /* TELL sends this: all work has ended */

static _Atomic pid_t armed;        /* pid of the process whose end is handled here; 0: none */
static unsigned looked;            /* agent only: number of GPUs already checked for MPS */
static _Atomic bool exiting, left; /* exit() was called; DRAIN and TELL of exit() are over */
static _Atomic uint32_t left_bell;
static _Atomic uint32_t status = NEVER_SET; /* the status given to _exit() */

/* Owned by the exit thread until `destroys` is 1, then by the destroyer thread. */
static struct td_context contexts[TD_CONTEXT_MAX];
static unsigned context_count;
static _Atomic uint32_t destroys; /* futex; 1: the destroyer thread shall begin */
static _Atomic bool destroyed;
static bool has_destroyer; /* agent only: the destroyer thread exists */
/* futex; 1: contexts are destroyed while threads wait for work */
static _Atomic uint32_t keeps_waiters;

/* -- the agent's part -- */

static void tell(void (*send)(const struct td_msg *msg))
{
	struct td_msg msg = {.type = TD_MSG_TYPE_left};

	msg.left.drained = atomic_load(&drained);
	if (send)
		send(&msg);
}

bool td_exit_step(void (*send)(const struct td_msg *msg))
{
	uint32_t todo = atomic_load(&asked) & ~atomic_load(&done);

	if (todo & FREEZE && !td_gate_unmap(TD_WORD_CLOSED | TD_WORD_STEP, 0))
		atomic_fetch_or(&done, FREEZE);
	if (todo & TELL) {
		tell(send);
		atomic_fetch_or(&done, TELL);
	}
	return atomic_load(&done) & FREEZE;
}

static bool has_done(uint32_t what)
{
	return atomic_load(&done) & what;
}

static void ask(uint32_t what)
{
	atomic_fetch_and(&done, ~what);
	atomic_fetch_or(&asked, what);
	td_agent_wake();
}

/* -- the exit thread -- */

static void pause_longer(uint64_t *pause_ns)
{
	td_time_sleep_until_ns(td_time_now_ns() + *pause_ns);
	if (*pause_ns < PAUSE_MAX_NS)
		*pause_ns *= 2;
}

static bool wait_for(bool (*condition)(void), uint64_t most_ns)
{
	uint64_t end_ns = td_time_now_ns() + most_ns, pause_ns = PAUSE_MIN_NS;

	while (!condition()) {
		if (td_time_now_ns() >= end_ns)
			return false;
		pause_longer(&pause_ns);
	}
	return true;
}

static bool is_frozen(void)
{
	return has_done(FREEZE);
}

static bool was_told(void)
{
	return has_done(TELL);
}

static bool is_empty(void)
{
	return !td_marker_any_active();
}

static uint64_t ticket;

static bool is_drained(void)
{
	return td_drain_is_done(ticket);
}

static bool is_destroyed(void)
{
	return atomic_load(&destroyed);
}

/* Returns true if all submitted work has ended. */
static bool drain(uint64_t end_ns)
{
	uint64_t now_ns = td_time_now_ns();

	if (!td_marker_launches() || !td_context_gpu_count())
		return true;
	ticket = td_drain_begin();
	return ticket && wait_for(is_drained, end_ns > now_ns ? end_ns - now_ns : 0);
}

static bool stop_and_drain(void)
{
	uint64_t end_ns = td_time_now_ns() + DRAIN_NS;

	ask(FREEZE);
	(void)wait_for(is_frozen, FREEZE_NS);
	td_gate_barrier();
	return wait_for(is_empty, DRAIN_NS) && drain(end_ns);
}

/* -- threads of the program -- */

/*
 * Parses the name of a directory in /proc/self/task: a decimal number. Returns 0 for any other
 * name.
 */
static pid_t parse_tid(const char *name)
{
	uint32_t tid = 0;

	for (; *name >= '0' && *name <= '9'; name++) {
		if (tid > INT32_MAX / 10 - 1)
			return 0;
		tid = tid * 10 + (uint32_t)(*name - '0');
	}
	return *name ? 0 : (pid_t)tid;
}

static bool is_of_library(int directory, const char *tid)
{
	char path[64] = "", name[16];
	ssize_t n;
	int fd;

	strncat(path, tid, 16);
	strcat(path, "/comm");
	fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, name, sizeof(name));
	close(fd);
	return n == 7 && !memcmp(name, "tandem\n", 7);
}

/* One record of getdents64(2). */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

/*
 * Stops the program's threads with a signal. A thread that blocks the signal runs on and may see
 * errors until the process ends. A stopped thread may hold a lock of libc, such as malloc's: from
 * here to the end the exit thread must not allocate.
 */
static void park_threads(void)
{
	static _Alignas(struct entry) char entries[4096];
	int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	if (directory < 0)
		return;
	td_caught_park();
	while ((n = syscall(SYS_getdents64, directory, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *entry =
				(const struct entry *)(const void *)&entries[at];
			pid_t tid = parse_tid(entry->name);

			if (tid > 0 && !is_of_library(directory, entry->name))
				(void)td_caught_send(tid);
			at += entry->size;
		}
	}
	close(directory);
}

void td_exit_waited(CUresult result)
{
	uint64_t end_ns;

	if (!result || !atomic_load(&keeps_waiters))
		return;
	end_ns = td_time_now_ns() + KEPT_NS;
	while (td_time_now_ns() < end_ns)
		td_futex_wait(&keeps_waiters, 1, KEPT_NS, false);
}

/* -- contexts -- */

/*
 * The destroyer thread. It is started early, because creating a thread calls malloc, whose lock a
 * stopped thread may hold.
 */
static void *destroy_main(void *arg)
{
	const struct td_driver *driver = td_driver();
	struct td_gpu_info gpu;

	(void)arg;
	td_marker_adopt_internal();
	while (!atomic_load(&destroys))
		td_futex_wait(&destroys, 0, NEVER_NS, false);
	for (unsigned i = 0; i < context_count; i++) {
		if (contexts[i].created)
			(void)driver->ctx_destroy(contexts[i].handle);
		else if (td_context_gpu(contexts[i].slot, &gpu))
			(void)driver->primary_ctx_reset(gpu.device);
	}
	atomic_store(&destroyed, true);
	return NULL;
}

/*
 * Destroys the program's contexts. Returns true if they are gone. is_still: no work is in flight,
 * so the program's threads are stopped first. Otherwise some threads wait inside the driver, and
 * the driver waits for them when it destroys their context. These threads are not stopped here;
 * td_exit_waited holds each of them once it has returned from the driver.
 */
static bool destroy(bool is_still)
{
	context_count = td_context_list(contexts, TD_CONTEXT_MAX);
	if (!context_count)
		return true;
	if (is_still)
		park_threads();
	else
		atomic_store(&keeps_waiters, 1);
	atomic_store(&destroys, 1);
	td_futex_wake_all(&destroys, false);
	return wait_for(is_destroyed, is_still ? DESTROY_NS : 0);
}

static void tell_daemon(bool good)
{
	atomic_store(&drained, good);
	ask(TELL);
	(void)wait_for(was_told, TELL_NS);
}

/*
 * Closes the gate, drains the device, destroys the contexts and tells the daemon, each within its
 * bound.
 */
static void leave(void)
{
	bool good = stop_and_drain();

	good |= destroy(good);
	tell_daemon(good);
	if (!good && wait_for(is_destroyed, LAST_NS))
		tell_daemon(true);
}

static void end_by_signal(int number)
{
	leave();
	td_caught_die(number);
	/* Reached only if the signal could not be raised. */
	(void)kill(getpid(), SIGKILL);
}

static void end_with_status(uint32_t code)
{
	leave();
	(void)syscall(SYS_exit_group, code);
}

/*
 * exit() was called. Other threads may still launch, because destructors may wait for them. The
 * driver's own exit handler deals with work that they submit from now on, and with work that does
 * not end in time.
 */
static void let_exit(void)
{
	bool good = drain(td_time_now_ns() + EXIT_NS);

	tell_daemon(good);
	atomic_store(&left, true);
	atomic_fetch_add(&left_bell, 1);
	td_futex_wake_all(&left_bell, false);
}

/*
 * Marks this thread as outside of any submitting call. It stays in the signal handler and never
 * returns to the call, so the drain must not wait for it.
 */
static void leave_submission(void)
{
	if (td_marker_self)
		atomic_store(&td_marker_self->depth, 0);
}

static void *exit_main(void *arg)
{
	(void)arg;
	td_marker_adopt_internal();
	for (;;) {
		uint32_t rung = atomic_load(&td_caught_bell);

		if (td_caught_first())
			end_by_signal(td_caught_first());
		if (atomic_load(&status) != NEVER_SET)
			end_with_status(atomic_load(&status));
		if (atomic_load(&exiting) && !atomic_load(&left))
			let_exit();
		td_futex_wait(&td_caught_bell, rung, IDLE_NS, false);
	}
	return NULL;
}

/* -- calls from other files -- */

bool td_exit_is_mps(const struct td_gpu_info *gpu)
{
	const struct td_driver *driver = td_driver();
	static _Atomic bool was;
	int enabled = 0;

	/* While the driver holds the process for a checkpoint it would block the call. */
	if (td_moves_is_held())
		return atomic_load(&was);
	if (!driver || !driver->device_get_attribute || !gpu->context ||
		driver->device_get_attribute(&enabled, TD_CUDA_ATTRIBUTE_MPS, gpu->device))
		enabled = 0;
	atomic_store(&was, enabled != 0);
	return enabled != 0;
}

static bool start_threads(void)
{
	has_destroyer = has_destroyer || !td_thread_start(destroy_main);
	return has_destroyer && !td_thread_start(exit_main);
}

void td_exit_look(unsigned gpus, bool again)
{
	struct td_gpu_info gpu;
	bool is_mps = atomic_load(&armed) != 0;

	if (gpus == looked && !(again && is_mps))
		return;
	for (unsigned i = 0; i < gpus && !is_mps; i++)
		is_mps = td_context_gpu(i, &gpu) && td_exit_is_mps(&gpu);
	/* If the threads cannot be started, the next step tries again. */
	if (is_mps && !atomic_load(&armed) && !start_threads())
		return;
	looked = gpus;
	if (!is_mps)
		return;
	td_caught_set_stay(leave_submission);
	atomic_store(&armed, getpid());
	td_caught_arm();
}

/* A vfork child shares our memory, so the pid is compared: only the process itself is armed. */
static bool is_armed(void)
{
	return atomic_load(&armed) && atomic_load(&armed) == getpid();
}

static void wake(void)
{
	atomic_fetch_add(&td_caught_bell, 1);
	td_futex_wake_all(&td_caught_bell, false);
}

void td_exit_begins(void)
{
	uint64_t end_ns = td_time_now_ns() + EXIT_NS + 2 * TELL_NS;

	if (!is_armed())
		return;
	atomic_store(&exiting, true);
	wake();
	while (!atomic_load(&left) && td_time_now_ns() < end_ns)
		td_futex_wait(&left_bell, atomic_load(&left_bell), 10 * TD_NS_PER_MS, false);
}

void td_exit_now(int code)
{
	uint32_t none = NEVER_SET;

	if (!is_armed())
		return;
	/* The thread that calls _exit() does not return to a submitting call either. */
	leave_submission();
	(void)atomic_compare_exchange_strong(&status, &none, (uint32_t)code & 0xff);
	wake();
	for (uint64_t end_ns = td_time_now_ns() + DRAIN_NS + 2 * LAST_NS;
		td_time_now_ns() < end_ns;)
		td_time_sleep_until_ns(end_ns);
}

void td_exit_forked(void)
{
	td_caught_forked();
	looked = 0;
	atomic_store(&armed, 0);
	atomic_store(&asked, 0);
	atomic_store(&done, 0);
	atomic_store(&exiting, false);
	atomic_store(&left, false);
	atomic_store(&status, NEVER_SET);
	has_destroyer = false;
	atomic_store(&destroys, 0);
	atomic_store(&destroyed, false);
	atomic_store(&keeps_waiters, 0);
}
