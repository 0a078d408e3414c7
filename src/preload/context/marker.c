/*
 * The pool of slots: a static block, then blocks from mmap that are never returned. Claiming takes
 * no lock and no malloc, so that a thread may claim a marker inside an allocator or after fork.
 */
#include "preload/context/marker.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS_PER_BLOCK 64

struct block {
	struct td_marker slots[SLOTS_PER_BLOCK];
	struct block *next; /* constant once published */
};

__thread struct td_marker *td_marker_self __attribute__((tls_model("initial-exec")));
struct td_marker td_marker_shared;

static struct block first_block;
static struct block *_Atomic blocks = &first_block; /* newest first */
static pthread_key_t end_key;
static bool has_key;

/*
 * The thread has run its destructor and gets no further marker: a later destructor would claim one
 * that nobody releases.
 */
static __thread bool ended __attribute__((tls_model("initial-exec")));

static void thread_ends(void *arg)
{
	struct td_marker *marker = arg;

	ended = true;
	td_marker_self = NULL;
	td_pace_thread_ends(marker);
	atomic_store_explicit(&marker->depth, 0, memory_order_release);
	atomic_store_explicit(&marker->claimed, 0, memory_order_release);
}

bool td_marker_init(void)
{
	has_key = !pthread_key_create(&end_key, thread_ends);
	return has_key;
}

static struct td_marker *claim_in(struct block *block)
{
	for (unsigned i = 0; i < SLOTS_PER_BLOCK; i++) {
		struct td_marker *marker = &block->slots[i];
		uint32_t free = 0;

		if (!atomic_load_explicit(&marker->claimed, memory_order_relaxed) &&
			atomic_compare_exchange_strong(&marker->claimed, &free, 1))
			return marker;
	}
	return NULL;
}

static struct block *add_block(void)
{
	int saved = errno;
	struct block *block = mmap(
		NULL, sizeof(*block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	if (block == MAP_FAILED)
		return NULL;
	block->next = atomic_load(&blocks);
	while (!atomic_compare_exchange_weak(&blocks, &block->next, block))
		;
	return block;
}

static struct td_marker *find_free(void)
{
	struct td_marker *marker = NULL;

	for (struct block *b = atomic_load(&blocks); b && !marker; b = b->next)
		marker = claim_in(b);
	while (!marker) {
		struct block *block = add_block();

		if (!block)
			return NULL;
		/* other threads may have filled the new block meanwhile */
		marker = claim_in(block);
	}
	return marker;
}

struct td_marker *td_marker_claim(void)
{
	struct td_marker *marker = td_marker_self;

	if (marker)
		return marker;
	if (ended)
		return &td_marker_shared;
	marker = find_free();
	if (!marker)
		return &td_marker_shared;
	marker->internal = 0;
	td_marker_self = marker;
	if (has_key)
		(void)pthread_setspecific(end_key, marker);
	return marker;
}

void td_marker_adopt_internal(void)
{
	td_marker_claim()->internal = 1;
}

bool td_marker_each(bool (*visit)(struct td_marker *marker, void *arg), void *arg)
{
	if (!visit(&td_marker_shared, arg))
		return false;
	for (struct block *b = atomic_load(&blocks); b; b = b->next)
		for (unsigned i = 0; i < SLOTS_PER_BLOCK; i++)
			if (!visit(&b->slots[i], arg))
				return false;
	return true;
}

static bool add_launches(struct td_marker *marker, void *sum)
{
	*(uint64_t *)sum += atomic_load_explicit(&marker->launches, memory_order_relaxed);
	return true;
}

uint64_t td_marker_launches(void)
{
	uint64_t sum = 0;

	td_marker_each(add_launches, &sum);
	return sum;
}

static bool is_idle(struct td_marker *marker, void *arg)
{
	(void)arg;
	return !atomic_load_explicit(&marker->depth, memory_order_acquire);
}

bool td_marker_any_active(void)
{
	return !td_marker_each(is_idle, NULL);
}

static bool clear_slot(struct td_marker *marker, void *arg)
{
	(void)arg;
	atomic_store(&marker->depth, 0);
	atomic_store(&marker->claimed, 0);
	atomic_store(&marker->launches, 0);
	atomic_store(&marker->own_stream_launches, 0);
	atomic_store(&marker->own_stream_done, 0);
	marker->internal = 0;
	atomic_store(&marker->own_mark.launches, 0);
	marker->own_mark.event = NULL;
	marker->own_mark.context = 0;
	td_window_reset(&marker->window);
	marker->meter = (struct td_meter_thread){0};
	return true;
}

void td_marker_forked(void)
{
	td_marker_each(clear_slot, NULL);
	td_marker_self = NULL;
	if (has_key)
		(void)pthread_setspecific(end_key, NULL);
}
