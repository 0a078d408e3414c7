/*
 * The slow paths of the gate, and the pages that hold the gate word.
 *
 * A page is exchanged by mapping another over it, which is atomic for every other thread: it loads
 * the old word or the new one. A thread that sleeps on the old page's futex is woken through a
 * second mapping of that page, and loads the word again; its sleep is bounded in any case.
 */
#include "preload/gate/gate.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/base/futex.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/gate/meter.h"
#include "preload/gate/pace.h"
#include "preload/measure/bursts.h"
#include "preload/measure/steps.h"
#include "preload/link/client.h"

/*
 * A thread that waits at the gate checks the word at least this often, in case a wake-up is lost.
 */
#define RECHECK_NS (200 * TD_NS_PER_MS)
/* A store that is older than this is visible to all processors without a fence. */
#define MARKS_ARRIVE_NS (10 * TD_NS_PER_MS)

union td_gate_static td_gate __attribute__((aligned(TD_GATE_SPAN)));
union td_meter_static td_meter __attribute__((aligned(TD_GATE_SPAN)));
_Atomic bool td_gate_fenced;
struct td_marker td_marker_inert;

/* A second mapping of the daemon's gate page, owned by the agent; NULL: the page is private. */
static struct td_gate_page *alias;
/*
 * True once the static pages have been mapped over, or are about to be. The agent writes it; the
 * child of a fork reads it.
 */
static _Atomic bool exchanged;

/* Submissions of a thread that uses the shared slot, nested ones included. */
static __thread uint32_t shared_depth __attribute__((tls_model("initial-exec")));

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

void td_gate_init(void)
{
	atomic_store(&td_gate_fenced, membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0);
}

bool td_gate_disabled(void)
{
	return td_settings.disabled || (td_marker_self && td_marker_self->internal);
}

/* -- threads -- */

static void mark(struct td_marker *slot)
{
	if (slot == &td_marker_shared)
		atomic_fetch_add(&slot->depth, TD_DEPTH_SHARED);
	else
		atomic_store_explicit(&slot->depth, 1, memory_order_relaxed);
	/*
	 * The slow path executes the fence here, as it may cost time. On the fast path the agent's
	 * membarrier does it.
	 */
	td_fence();
}

static void unmark(struct td_marker *slot)
{
	if (slot == &td_marker_shared)
		atomic_fetch_sub(&slot->depth, TD_DEPTH_SHARED);
	else
		atomic_store_explicit(&slot->depth, 0, memory_order_release);
}

static void count_launch(struct td_marker *slot, void *stream)
{
	atomic_fetch_add_explicit(&slot->launches, 1, memory_order_relaxed);
	if (stream == TD_STREAM_PER_THREAD)
		atomic_fetch_add_explicit(&slot->own_stream_launches, 1, memory_order_relaxed);
}

static void wait_closed(struct td_marker *slot, uint32_t word)
{
	td_client_waits(true);
	td_context_mark_own_stream(slot);
	td_client_want(word);
	td_futex_wait(&td_gate.page.word, word, RECHECK_NS, true);
	td_client_waits(false);
}

static bool has_window(uint32_t word)
{
	return word & TD_WORD_WINDOW && atomic_load_explicit(&td_gate.page.window_ns,
						memory_order_relaxed) != TD_WINDOW_METER;
}

/*
 * Returns whether a window or a duty is in force. An old daemon that does not know duties counts
 * the word's changes in that bit; its page has a duty of 0.
 */
static bool is_paced(uint32_t word)
{
	return has_window(word) ||
	       (word & TD_WORD_DUTY &&
		       atomic_load_explicit(&td_gate.page.duty_ppm, memory_order_relaxed));
}

/*
 * Notes a call for the detection of steps and bursts. The page is checked too, because an old
 * daemon that does not know steps uses the word's bit as part of its count of changes.
 */
static void note_step(uint32_t kind, bool waits)
{
	uint32_t wanted = atomic_load_explicit(&td_gate.page.steps, memory_order_relaxed);
	int saved = errno;

	if (!wanted || td_gate_disabled())
		return;
	if (wanted & TD_WANTED_BURSTS)
		td_bursts_call(td_time_now_ns(), waits);
	if (wanted & TD_WANTED_STEPS)
		td_steps_call(kind & TD_SUBMIT_CALL
				      ? td_submit_call(kind)
				      : kind >> TD_SUBMIT_FUNCTION_SHIFT | TD_STEPS_FUNCTION);
	errno = saved;
}

void td_gate_note_wait(uint32_t kind)
{
	/*
	 * After a call that waited for the GPU, all earlier launches have ended, so samples are
	 * due.
	 */
	if (td_marker_self)
		td_marker_self->meter.wait = 0;
	if (td_gate_word() & TD_WORD_STEPS)
		note_step(kind, true);
}

/* A NULL stream means that the call only builds or changes a graph. */
static bool goes_into_graph(void *stream)
{
	return !stream || td_context_is_capturing(stream);
}

/*
 * Returns with the slot marked. Captured work does not go onto the GPU, so it passes a closed gate.
 * A captured copy or set, or a graph node made of one, names memory that the driver looks up at
 * once: it waits until all memory is mapped.
 */
static void wait_at_gate(struct td_marker *slot, void *stream, uint32_t kind)
{
	bool captured = goes_into_graph(stream), names_memory = kind & TD_SUBMIT_CALL;
	struct td_pace pace = {0};
	bool waited = false;

	for (;;) {
		uint32_t word = td_gate_word();

		if (word & TD_WORD_CLOSED && (!captured || names_memory)) {
			if (!waited)
				atomic_fetch_add_explicit(
					&td_meter.page.gate_waits, 1, memory_order_relaxed);
			waited = true;
			wait_closed(slot, word);
			captured = goes_into_graph(stream);
			continue;
		}
		if (word & TD_WORD_ARMED && !captured)
			td_client_want(word);
		mark(slot);
		if (captured && !names_memory)
			return;
		word = td_gate_word();
		if (word & TD_WORD_CLOSED) {
			unmark(slot);
			continue;
		}
		if (captured)
			return;
		if (slot == &td_marker_shared)
			break;
		if (word & (TD_WORD_WINDOW | TD_WORD_DUTY))
			atomic_fetch_or_explicit(
				&slot->depth, TD_DEPTH_METERED, memory_order_relaxed);
		if (!is_paced(word))
			break;
		if (td_pace_may_submit(&pace, slot, stream, kind)) {
			atomic_fetch_or_explicit(
				&slot->depth, TD_DEPTH_PACED, memory_order_relaxed);
			break;
		}
		unmark(slot);
		td_pace_sleep(&pace, slot, word);
	}
	count_launch(slot, stream);
	if (td_gate_word() & TD_WORD_STEPS)
		note_step(kind, false);
}

void td_gate_await(void)
{
	struct td_marker *slot = td_marker_claim();
	uint32_t word = td_gate_word();
	int saved = errno;

	if (word & TD_WORD_CLOSED)
		wait_closed(slot, word);
	else
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
	errno = saved;
}

/*
 * Lets a submission pass an open gate that asks only for metering, with as little work as possible.
 * The caller has marked the slot.
 */
static bool pass_metered(struct td_marker *slot, void *stream, uint32_t kind)
{
	uint32_t word = td_gate_word();
	int saved;

	if (!(word & TD_WORD_WINDOW) || word & TD_WORD_FLAGS & ~(TD_WORD_WINDOW | TD_WORD_STEPS) ||
		has_window(word) || td_context_any_capture())
		return false;
	atomic_store_explicit(&slot->launches,
		atomic_load_explicit(&slot->launches, memory_order_relaxed) + 1,
		memory_order_relaxed);
	if (td_submit_stream(stream, kind) == TD_STREAM_PER_THREAD)
		atomic_store_explicit(&slot->own_stream_launches,
			atomic_load_explicit(&slot->own_stream_launches, memory_order_relaxed) + 1,
			memory_order_relaxed);
	atomic_store_explicit(&slot->depth, 1 | TD_DEPTH_METERED, memory_order_relaxed);
	/* A copy may have waited for earlier launches, so samples are due. */
	if (kind & TD_SUBMIT_CALL)
		slot->meter.wait = 0;
	if (word & TD_WORD_STEPS) {
		saved = errno;
		note_step(kind, false);
		errno = saved;
	}
	return true;
}

struct td_marker *td_gate_enter_slow(struct td_marker *slot, void *stream, uint32_t kind)
{
	uint32_t depth = atomic_load_explicit(&slot->depth, memory_order_relaxed) - 1;
	int saved;

	/*
	 * The call is nested in another submission, or is the library's own. The outer call has
	 * passed the gate.
	 */
	if (depth || slot->internal)
		return slot;
	if (pass_metered(slot, stream, kind))
		return slot;
	saved = errno;
	unmark(slot);
	wait_at_gate(slot, td_submit_stream(stream, kind), kind);
	errno = saved;
	return slot;
}

/* Handles the first submission of a thread, and every submission of a thread that has no slot. */
struct td_marker *td_gate_enter_first(void *stream, uint32_t kind)
{
	int saved = errno;
	struct td_marker *slot;

	if (td_settings.disabled)
		return &td_marker_inert;
	slot = td_marker_claim();
	if (slot == &td_marker_shared) {
		if (!shared_depth++) {
			td_context_use();
			wait_at_gate(slot, td_submit_stream(stream, kind), kind);
		}
	} else {
		td_context_use();
		wait_at_gate(slot, td_submit_stream(stream, kind), kind);
	}
	errno = saved;
	return slot;
}

struct td_marker *td_gate_enter_naming(void)
{
	struct td_marker *slot = td_marker_self;
	int saved = errno;

	if (td_settings.disabled)
		return &td_marker_inert;
	if (!slot) {
		slot = td_marker_claim();
		td_context_use();
	}
	if (slot == &td_marker_shared ? !shared_depth++ : !slot->depth && !slot->internal)
		wait_at_gate(slot, NULL, TD_SUBMIT_CALL);
	else if (slot != &td_marker_shared)
		atomic_fetch_add_explicit(&slot->depth, 1, memory_order_relaxed);
	errno = saved;
	return slot;
}

void td_gate_leave_slow(struct td_marker *slot)
{
	uint32_t depth;
	int saved = errno;

	if (slot == &td_marker_inert)
		return;
	if (slot == &td_marker_shared) {
		if (!--shared_depth)
			unmark(slot);
		return;
	}
	depth = atomic_load_explicit(&slot->depth, memory_order_relaxed);
	if (td_meter_is_on(slot))
		td_meter_launched(slot);
	if (depth & TD_DEPTH_PACED && (depth & ~TD_DEPTH_METERED) == (1 | TD_DEPTH_PACED))
		td_pace_submitted(slot);
	if ((depth & ~(TD_DEPTH_PACED | TD_DEPTH_METERED)) == 1)
		depth = 1;
	atomic_store_explicit(&slot->depth, depth - 1, memory_order_release);
	errno = saved;
}

/* -- pages -- */

static void *map_fd(int fd, int protection)
{
	return mmap(NULL, TD_PAGE_BYTES, protection, MAP_SHARED, fd, 0);
}

static int move_over(void *from, void *to)
{
	/*
	 * mremap() replaces the mapping at `to` while it holds the kernel's lock of the address
	 * space, so other threads see either the old page or the new one.
	 */
	if (mremap(from, TD_PAGE_BYTES, TD_PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
		MAP_FAILED)
		return -errno;
	return 0;
}

/*
 * alias is cleared before the mapping goes. Otherwise the child of a fork in between could unmap an
 * address that another thread of the parent has reused.
 */
static void drop_alias(void)
{
	struct td_gate_page *gone = alias;

	alias = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	if (gone)
		munmap(gone, TD_PAGE_BYTES);
}

/*
 * Checks that the descriptor has at least a page. If a peer sent a shorter one, an access would
 * raise SIGBUS.
 */
static bool is_page(int fd)
{
	return lseek(fd, 0, SEEK_END) >= TD_PAGE_BYTES;
}

int td_gate_map(int gate_fd, int meter_fd)
{
	void *gate, *meter, *second;
	int r;

	if (!is_page(gate_fd) || !is_page(meter_fd))
		return -EINVAL;
	gate = map_fd(gate_fd, PROT_READ);
	second = map_fd(gate_fd, PROT_READ);
	meter = map_fd(meter_fd, PROT_READ | PROT_WRITE);
	if (gate == MAP_FAILED || second == MAP_FAILED || meter == MAP_FAILED) {
		r = -errno;
		goto err_unmap;
	}
	atomic_store(&exchanged, true);
	r = move_over(meter, &td_meter);
	if (r)
		goto err_unmap;
	meter = MAP_FAILED;
	r = move_over(gate, &td_gate);
	if (r)
		goto err_unmap;
	drop_alias();
	alias = second;
	return 0;

err_unmap:
	if (gate != MAP_FAILED)
		munmap(gate, TD_PAGE_BYTES);
	if (second != MAP_FAILED)
		munmap(second, TD_PAGE_BYTES);
	if (meter != MAP_FAILED)
		munmap(meter, TD_PAGE_BYTES);
	return r;
}

static void *private_page(void)
{
	return mmap(
		NULL, TD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int map_private(uint32_t word, uint64_t window_ns)
{
	struct td_gate_page *gate = private_page();
	void *meter = private_page();
	int r;

	if (gate == MAP_FAILED || meter == MAP_FAILED) {
		r = -errno;
		goto err_unmap;
	}
	atomic_store(&gate->word, word);
	atomic_store(&gate->window_ns, window_ns);
	r = move_over(meter, &td_meter);
	if (r)
		goto err_unmap;
	meter = MAP_FAILED;
	r = move_over(gate, &td_gate);
	if (!r)
		return 0;

err_unmap:
	if (gate != MAP_FAILED)
		munmap(gate, TD_PAGE_BYTES);
	if (meter != MAP_FAILED)
		munmap(meter, TD_PAGE_BYTES);
	return r;
}

int td_gate_unmap(uint32_t word, uint64_t window_ns)
{
	int r;

	if (!alias) {
		td_gate_write(word);
		return 0;
	}
	r = map_private(word, window_ns);
	if (r)
		return r;
	td_futex_wake_all(&alias->word, true);
	drop_alias();
	return 0;
}

void td_gate_write(uint32_t word)
{
	if (alias)
		return;
	atomic_store(&td_gate.page.word, word);
	td_futex_wake_all(&td_gate.page.word, true);
}

/*
 * Makes threads fence for themselves from now on, and waits until their older marks are visible. A
 * thread that has not yet seen the flag has marked its slot without a fence. Such a store becomes
 * visible within a microsecond.
 */
static void fence_from_now_on(void)
{
	atomic_store(&td_gate_fenced, true);
	td_fence();
	td_time_sleep_until_ns(td_time_now_ns() + MARKS_ARRIVE_NS);
}

void td_gate_barrier(void)
{
	td_fence();
	if (!atomic_load(&td_gate_fenced) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		fence_from_now_on();
}

void td_gate_forked(void)
{
	shared_depth = 0;
	td_gate_init();
	/*
	 * The process may have forked while the agent exchanged the pages. The child cannot know
	 * which of the two pages it has, or whether it may write it. So it maps new pages.
	 */
	if (!atomic_load(&exchanged)) {
		td_gate_write(0);
		memset(&td_meter, 0, sizeof(td_meter.page));
	} else if (!map_private(0, 0)) {
		drop_alias();
	}
	/* If mmap fails, the child keeps the parent's gate page and obeys it. */
}
