/*
 * The pool of slots: a static block and, beyond it, blocks from mmap that are never returned. Claiming is lock-free; no malloc anywhere,
 * so that a thread may claim inside an allocator or after fork.
 */
#include "preload/context/slot.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>


#define SLOTS_PER_BLOCK 64

struct block {
	struct td_slot slots[SLOTS_PER_BLOCK];
	struct block *next; /* constant once published */
};

__thread struct td_slot *td_slot_self __attribute__((tls_model("initial-exec")));
struct td_slot td_slot_shared;

static struct block first_block;
static struct block *_Atomic blocks = &first_block; /* newest first */
static pthread_key_t end_key;
static bool has_key;

/* The thread has run its destructor: it gets no slot any more, or each later destructor would claim one that nobody releases. */
static __thread bool ended __attribute__((tls_model("initial-exec")));

static void thread_ends(void *arg)
{
	struct td_slot *slot = arg;

	ended = true;
	td_slot_self = NULL;
	td_pace_thread_ends(slot);
	atomic_store_explicit(&slot->depth, 0, memory_order_release);
	atomic_store_explicit(&slot->claimed, 0, memory_order_release);
}

bool td_slot_init(void)
{
	has_key = !pthread_key_create(&end_key, thread_ends);
	return has_key;
}

static struct td_slot *claim_in(struct block *block)
{
	for (unsigned i = 0; i < SLOTS_PER_BLOCK; i++) {
		struct td_slot *slot = &block->slots[i];
		uint32_t free = 0;

		if (!atomic_load_explicit(&slot->claimed, memory_order_relaxed) &&
			atomic_compare_exchange_strong(&slot->claimed, &free, 1))
			return slot;
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

static struct td_slot *find_free(void)
{
	struct td_slot *slot = NULL;

	for (struct block *b = atomic_load(&blocks); b && !slot; b = b->next)
		slot = claim_in(b);
	while (!slot) {
		struct block *block = add_block();

		if (!block)
			return NULL;
		slot = claim_in(block); /* others may have filled it meanwhile */
	}
	return slot;
}

struct td_slot *td_slot_claim(void)
{
	struct td_slot *slot = td_slot_self;

	if (slot)
		return slot;
	if (ended)
		return &td_slot_shared;
	slot = find_free();
	if (!slot)
		return &td_slot_shared;
	slot->internal = 0;
	td_slot_self = slot;
	if (has_key)
		(void)pthread_setspecific(end_key, slot);
	return slot;
}

void td_slot_adopt_internal(void)
{
	td_slot_claim()->internal = 1;
}

bool td_slot_each(bool (*visit)(struct td_slot *slot, void *arg), void *arg)
{
	if (!visit(&td_slot_shared, arg))
		return false;
	for (struct block *b = atomic_load(&blocks); b; b = b->next)
		for (unsigned i = 0; i < SLOTS_PER_BLOCK; i++)
			if (!visit(&b->slots[i], arg))
				return false;
	return true;
}

static bool add_launches(struct td_slot *slot, void *sum)
{
	*(uint64_t *)sum += atomic_load_explicit(&slot->launches, memory_order_relaxed);
	return true;
}

uint64_t td_slot_launches(void)
{
	uint64_t sum = 0;

	td_slot_each(add_launches, &sum);
	return sum;
}

static bool is_idle(struct td_slot *slot, void *arg)
{
	(void)arg;
	return !atomic_load_explicit(&slot->depth, memory_order_acquire);
}

bool td_slot_any_active(void)
{
	return !td_slot_each(is_idle, NULL);
}

static bool forget(struct td_slot *slot, void *arg)
{
	(void)arg;
	atomic_store(&slot->depth, 0);
	atomic_store(&slot->claimed, 0);
	atomic_store(&slot->launches, 0);
	atomic_store(&slot->own_stream_launches, 0);
	atomic_store(&slot->own_stream_done, 0);
	slot->internal = 0;
	atomic_store(&slot->own_mark.launches, 0);
	slot->own_mark.event = NULL;
	slot->own_mark.context = 0;
	td_window_reset(&slot->window);
	slot->meter = (struct td_meter_thread){0};
	return true;
}

void td_slot_forked(void)
{
	td_slot_each(forget, NULL);
	td_slot_self = NULL;
	if (has_key)
		(void)pthread_setspecific(end_key, NULL);
}
