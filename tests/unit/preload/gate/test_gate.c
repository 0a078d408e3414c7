/* The gate and its slots with real threads: no driver, no daemon; the test is the agent. */
#include "test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/gate/gate.h"

#define THREADS 8
/* In every eighth opening: more than one for each. */
#define LAUNCHES_MIN 16

static _Atomic bool stop, forbidden;
static _Atomic uint64_t really_launched, broken_promises;

/* The driver's side of a launch. */
static void launch_for_real(void)
{
	if (atomic_load(&forbidden))
		atomic_fetch_add(&broken_promises, 1);
	atomic_fetch_add(&really_launched, 1);
}

static void launch(void)
{
	struct td_marker *marker = td_gate_enter(NULL, 0);

	launch_for_real();
	td_gate_leave(marker);
}

static void init(void)
{
	static bool done;

	if (!done) {
		td_marker_init();
		td_gate_init();
	}
	done = true;
}

static void *launch_until_stopped(void *arg)
{
	/* The one that flips must get a processor too, on a machine that has few. */
	for (unsigned n = 1; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
		launch();
		if (n % 256 == 0)
			sched_yield();
	}
	return arg;
}

static void wait_empty(void)
{
	td_gate_barrier();
	while (td_marker_any_active())
		td_time_sleep_until_ns(td_time_now_ns() + 10000);
}

static void flip(unsigned times)
{
	for (uint32_t i = 1; i <= times; i++) {
		uint64_t acknowledged;

		td_gate_write(TD_WORD_CLOSED | i * TD_WORD_STEP);
		wait_empty();
		acknowledged = td_marker_launches();
		atomic_store(&forbidden, true);
		td_time_sleep_until_ns(td_time_now_ns() + (i % 64 ? 50000 : 500000));
		CHECK_EQ(td_marker_launches(), acknowledged);
		CHECK_EQ(atomic_load(&really_launched), acknowledged);
		atomic_store(&forbidden, false);
		td_gate_write(0);
		/* Threads that get little time of a CPU launch something at least now. */
		while (i % 8 == 0 && td_marker_launches() < acknowledged + LAUNCHES_MIN)
			td_time_sleep_until_ns(td_time_now_ns() + 50000);
	}
}

static void stress(unsigned times)
{
	uint64_t before = td_marker_launches();
	pthread_t threads[THREADS];

	atomic_store(&really_launched, before);
	atomic_store(&stop, false);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, launch_until_stopped, NULL);
	flip(times);
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(atomic_load(&broken_promises), 0);
	CHECK_EQ(td_marker_launches(), atomic_load(&really_launched));
	CHECK(td_marker_launches() >= before + times); /* or there was nothing to hold up */
}

TEST(an_open_gate_counts_and_lets_through)
{
	uint64_t before = td_marker_launches();

	init();
	launch();
	launch();
	CHECK_EQ(td_marker_launches(), before + 2);
	CHECK(!td_marker_any_active());
}

TEST(a_thread_inside_a_call_is_seen)
{
	struct td_marker *marker;

	init();
	marker = td_gate_enter(NULL, 0);
	CHECK(td_marker_any_active());
	td_gate_leave(marker);
	CHECK(!td_marker_any_active());
}

TEST(nothing_is_launched_after_an_acknowledged_drain)
{
	init();
	stress(1000);
}

TEST(nothing_is_launched_after_an_acknowledged_drain_with_fences_instead_of_membarrier)
{
	bool was;

	init();
	was = atomic_load(&td_gate_fenced);
	atomic_store(&td_gate_fenced, true);
	stress(300);
	atomic_store(&td_gate_fenced, was);
}

/* As a program does that shuts itself in once it has begun. */
static bool refuse_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(nothing_is_launched_after_an_acknowledged_drain_once_membarrier_is_refused)
{
	int status = -1;
	pid_t pid;

	init();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		td_gate_forked();
		if (atomic_load(&td_gate_fenced) || !refuse_membarrier())
			_exit(77);
		stress(300);
		_exit(atomic_load(&td_gate_fenced) ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("this kernel knows no membarrier, or no filter of system calls");
	CHECK_EQ(status, 0);
}

TEST(a_call_from_inside_a_call_passes_a_closed_gate_uncounted)
{
	struct td_marker *outer, *inner;
	uint64_t before;

	init();
	outer = td_gate_enter(NULL, 0);
	before = td_marker_launches();
	td_gate_write(TD_WORD_CLOSED | TD_WORD_STEP);
	inner = td_gate_enter(NULL, 0);
	CHECK_EQ(td_marker_launches(), before);
	td_gate_leave(inner);
	CHECK(td_marker_any_active());
	td_gate_leave(outer);
	CHECK(!td_marker_any_active());
	td_gate_write(0);
}

static void *launch_as_internal(void *arg)
{
	td_marker_adopt_internal();
	launch();
	return arg;
}

TEST(our_own_threads_pass_a_closed_gate_uncounted)
{
	uint64_t before = td_marker_launches();
	pthread_t thread;

	init();
	td_gate_write(TD_WORD_CLOSED | TD_WORD_STEP);
	pthread_create(&thread, NULL, launch_as_internal, NULL);
	pthread_join(thread, NULL);
	CHECK_EQ(td_marker_launches(), before);
	td_gate_write(0);
}

static void *launch_once(void *arg)
{
	launch();
	return arg;
}

static bool count_claimed(struct td_marker *marker, void *arg)
{
	*(unsigned *)arg += atomic_load(&marker->claimed);
	return true;
}

TEST(slots_of_ended_threads_are_used_again_and_their_counts_kept)
{
	uint64_t before = td_marker_launches();
	unsigned claimed_before = 0, claimed = 0;

	init();
	td_marker_each(count_claimed, &claimed_before);
	for (int i = 0; i < 200; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, launch_once, NULL);
		pthread_join(thread, NULL);
	}
	td_marker_each(count_claimed, &claimed);
	CHECK_EQ(td_marker_launches(), before + 200);
	CHECK_EQ(claimed, claimed_before);
}

static pthread_barrier_t all_here;

static void *launch_together(void *arg)
{
	launch();
	pthread_barrier_wait(&all_here);
	return arg;
}

TEST(more_threads_than_a_block_has_slots_all_get_one)
{
	enum { MANY = 150 };
	uint64_t before = td_marker_launches();
	pthread_t threads[MANY];
	unsigned claimed = 0;

	init();
	pthread_barrier_init(&all_here, NULL, MANY + 1);
	for (int i = 0; i < MANY; i++)
		pthread_create(&threads[i], NULL, launch_together, NULL);
	while (td_marker_launches() < before + MANY)
		td_time_sleep_until_ns(td_time_now_ns() + 100000);
	td_marker_each(count_claimed, &claimed);
	pthread_barrier_wait(&all_here);
	for (int i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	CHECK(claimed >= MANY);
}

static pthread_key_t late_key;

static void launch_at_the_end(void *arg)
{
	static __thread int round;

	launch();
	if (++round < 3)
		pthread_setspecific(
			late_key, arg); /* once more, behind the slot's own destructor */
}

static void *end_late(void *arg)
{
	pthread_setspecific(late_key, arg);
	launch();
	return NULL;
}

TEST(destructors_may_launch_when_the_slot_is_gone)
{
	uint64_t before = td_marker_launches();
	int token;
	pthread_t thread;

	init();
	pthread_key_create(&late_key, launch_at_the_end);
	pthread_create(&thread, NULL, end_late, &token);
	pthread_join(thread, NULL);
	pthread_key_delete(late_key);
	CHECK_EQ(td_marker_launches(), before + 4);
	CHECK(!td_marker_any_active());
}

TEST(a_forked_child_starts_open_and_empty)
{
	int status;
	pid_t pid;

	init();
	launch();
	td_gate_write(TD_WORD_CLOSED | TD_WORD_STEP);
	pid = fork();
	if (pid == 0) {
		td_gate_forked();
		td_marker_forked();
		if (td_marker_launches())
			_exit(1);
		launch(); /* would wait for ever behind the parent's gate */
		_exit(td_marker_launches() == 1 ? 0 : 2);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	td_gate_write(0);
}

static int page_fd(uint32_t word, struct td_gate_page **ret_page)
{
	int fd = memfd_create("page", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, TD_PAGE_BYTES) < 0)
		return -1;
	*ret_page = mmap(NULL, TD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*ret_page != MAP_FAILED)
		atomic_store(&(*ret_page)->word, word);
	return fd;
}

TEST(a_daemons_page_governs_until_it_is_taken_away)
{
	struct td_gate_page *page, *meter;
	int gate_fd = page_fd(TD_WORD_CLOSED, &page), meter_fd = page_fd(0, &meter);

	init();
	CHECK(gate_fd >= 0 && meter_fd >= 0);
	CHECK_EQ(td_gate_map(gate_fd, meter_fd), 0);
	CHECK_EQ(td_gate_word(), TD_WORD_CLOSED);
	atomic_store(&page->word, 0);
	CHECK_EQ(td_gate_word(), 0);
	atomic_store(&td_meter.page.launches, 7);
	CHECK_EQ(atomic_load(&((struct td_meter_page *)meter)->launches), 7);
	CHECK_EQ(td_gate_unmap(TD_WORD_CLOSED | 8, 0), 0);
	CHECK_EQ(td_gate_word(), TD_WORD_CLOSED | 8);
	td_gate_write(0);
	CHECK_EQ(td_gate_word(), 0);
	CHECK_EQ(atomic_load(&page->word), 0);
	close(gate_fd);
	close(meter_fd);
}

TEST(a_page_that_is_too_short_is_refused)
{
	int fd = memfd_create("short", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(td_gate_map(fd, fd) < 0);
	CHECK_EQ(td_gate_word(), 0);
	launch();
	close(fd);
}

TEST(a_sleeper_wakes_when_its_page_is_taken_away)
{
	struct td_gate_page *page, *meter;
	int gate_fd = page_fd(TD_WORD_CLOSED, &page), meter_fd = page_fd(0, &meter);
	uint64_t before = td_marker_launches();
	pthread_t thread;

	init();
	CHECK_EQ(td_gate_map(gate_fd, meter_fd), 0);
	pthread_create(&thread, NULL, launch_once, NULL);
	while (!atomic_load(&((struct td_meter_page *)meter)->gate_waits))
		td_time_sleep_until_ns(td_time_now_ns() + 100000);
	CHECK_EQ(td_marker_launches(), before);
	CHECK_EQ(td_gate_unmap(0, 0), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(td_marker_launches(), before + 1);
	close(gate_fd);
	close(meter_fd);
}
