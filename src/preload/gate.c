/* Slots, waiting, flushing; see gate.h. */
#include "preload/gate.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/client.h"
#include "preload/real.h"

/* More threads than this share the last slot, whose mark then counts them (see enter_shared). */
#define SLOT_COUNT 2048
/* A waiter looks again this often, in case its page was replaced while it slept. */
#define RECHECK_NS 50000000

/* A page of its own, so that another can be mapped over it. */
union td_gate_frame td_gate __attribute__((aligned(TD_PAGE_BYTES)));

_Thread_local struct td_slot *td_slot_mine __attribute__((tls_model("initial-exec")));
bool td_gate_fenced;

static _Thread_local bool own_thread __attribute__((tls_model("initial-exec")));
static struct td_slot slots[SLOT_COUNT];
static pthread_key_t slot_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int disabled = -1;
static _Atomic uint32_t wanted_word; /* the last word for which WANT was sent */

bool td_gate_disabled(void)
{
	/* A race computes the same twice. */
	if (disabled < 0) {
		const char *text = getenv("TANDEM_DISABLE");

		disabled = text && *text && strcmp(text, "0");
	}
	return disabled || own_thread;
}

void td_gate_own_thread(void)
{
	own_thread = true;
}

static void give_slot_back(void *arg)
{
	struct td_slot *slot = arg;

	slot->has_context = false;
	td_slot_mine = NULL;
	atomic_store(&slot->taken, 0);
}

static void set_up(void)
{
	pthread_key_create(&slot_key, give_slot_back);
	td_gate_fenced =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

static struct td_slot *claim_slot(void)
{
	pthread_once(&once, set_up);
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		uint32_t is_free = 0;

		if (!atomic_compare_exchange_strong(&slots[i].taken, &is_free, 1))
			continue;
		pthread_setspecific(slot_key, &slots[i]);
		td_slot_mine = &slots[i];
		return &slots[i];
	}
	return NULL;
}

static void wait_for_change(uint32_t word)
{
	const struct timespec timeout = {0, RECHECK_NS};

	(void)syscall(SYS_futex, &td_gate.page.word, FUTEX_WAIT, word, &timeout, NULL, 0);
}

/* Told once per change of the word, by whoever comes first. */
static void tell_want(uint32_t word)
{
	if (atomic_exchange(&wanted_word, word) != word)
		td_client_want(word);
}

/* Captured work is not run: it may be recorded while the gate is closed, and must not wait inside a capture. */
static bool is_captured(CUstream stream, bool per_thread)
{
	int status = 0;

	if (!td_client_captures() || stream == TD_NEVER_CAPTURED)
		return false;
	if (per_thread && td_real.cuStreamIsCapturing_ptsz)
		return !td_real.cuStreamIsCapturing_ptsz(stream, &status) && status;
	return td_real.cuStreamIsCapturing && !td_real.cuStreamIsCapturing(stream, &status) &&
	       status;
}

struct td_slot *td_gate_enter_slowly(CUstream stream, bool per_thread)
{
	struct td_slot *slot = td_slot_mine;

	if (td_gate_disabled())
		return NULL;
	if (!slot)
		slot = claim_slot();
	/* No slot left (thousands of threads): this one cannot be waited for, so it is not governed. */
	if (!slot)
		return NULL;
	if (!slot->has_context && td_client_use_context())
		slot->has_context = true;
	if (is_captured(stream, per_thread))
		return NULL;
	for (;;) {
		uint32_t word;

		atomic_store_explicit(&slot->active, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		word = atomic_load_explicit(&td_gate.page.word, memory_order_acquire);
		if (!(word & TD_WORD_CLOSED)) {
			if (word & TD_WORD_ARMED)
				tell_want(word);
			return slot;
		}
		atomic_store_explicit(&slot->active, 0, memory_order_release);
		tell_want(word);
		wait_for_change(word);
	}
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool td_gate_flush(uint64_t timeout_ns)
{
	uint64_t deadline = now_ns() + timeout_ns;
	const struct timespec pause = {0, 20000};

	if (td_gate_fenced)
		atomic_thread_fence(memory_order_seq_cst);
	else
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		while (atomic_load_explicit(&slots[i].active, memory_order_acquire)) {
			if (now_ns() > deadline)
				return false;
			nanosleep(&pause, NULL);
		}
	}
	return true;
}

uint64_t td_gate_submissions(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SLOT_COUNT; i++)
		sum += atomic_load_explicit(&slots[i].submissions, memory_order_relaxed);
	return sum;
}

int td_gate_map(int fd, uint32_t word)
{
	int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
	int protection = PROT_READ | (fd < 0 ? PROT_WRITE : 0);
	struct td_gate_page *page;

	if (fd >= 0 || !word)
		return mmap(&td_gate, TD_PAGE_BYTES, protection, flags, fd, 0) == MAP_FAILED
			       ? -errno
			       : 0;
	/* A closed private page must not be seen open in between: it is made aside, then moved into place. */
	page = mmap(NULL, TD_PAGE_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	atomic_store(&page->word, word);
	return mremap(page, TD_PAGE_BYTES, TD_PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
		       &td_gate) == MAP_FAILED
		       ? -errno
		       : 0;
}

void td_gate_forked(void)
{
	memset(slots, 0, sizeof(slots));
	td_slot_mine = NULL;
	own_thread = false;
	(void)td_gate_map(-1, 0);
}
