/* The ledger of granted memory on each GPU. client.c and claims.c share it. */
#pragma once

#include "preload/base/backend.h"
#include "preload/base/lock.h"
#include "preload/link/client.h"

enum need_state {
	NEED_NONE,
	NEED_ASKED, /* the agent is to send ASK */
	NEED_SENT,
	NEED_ANSWERED,
};

/* The ledger of one GPU. */
struct ledger {
	struct td_lock need_lock; /* one ASK at a time: the protocol has one ticket per slot */
	_Atomic uint32_t need;    /* enum need_state; futex */
	uint32_t ticket; /* owned by the asking thread in NONE and ANSWERED, else by the agent */
	uint64_t need_bytes;
	uint64_t need_crossed_bytes; /* the agent's: crossed bytes when ASK was sent */
	enum td_mobility need_mobility;
	uint32_t granted; /* the answer; valid in ANSWERED */
	_Atomic uint32_t may_defer, may_keep;
	_Atomic uint32_t memory_changed;
	_Atomic uint32_t quota_told; /* the daemon has told quota_bytes */
	_Atomic uint64_t capacity_bytes, short_bytes;
	/* The job's hard and soft limit in bytes; 0: not known; UINT64_MAX: no limit. */
	_Atomic uint64_t quota_bytes, soft_bytes;
	struct td_lock lock;
	/*
	 * Guarded by lock. device_bytes and total_bytes: what the last GRANT lets the process have
	 * without asking, on the device and in all. The next four: granted but not yet in the
	 * backend's stats, bytes that are movable, stay on the device, stay off it for now, or are
	 * paged. changes counts their changes.
	 */
	uint64_t device_bytes, total_bytes, landing_bytes, staying_bytes, deferred_bytes,
		paged_bytes, changes;
	bool open;  /* the plan with that limit opens the gate */
	bool fills; /* a fill is bringing memory to the device */
	_Atomic uint64_t cached_bytes;
	_Atomic uint64_t heeded_bytes; /* crossed bytes that the daemon knew at its last answer */
};

extern struct ledger td_ledgers[TD_SLOT_MAX];

/* A snapshot of the promises: bytes granted but not yet in the backend's stats. */
struct promises {
	uint64_t landing_bytes, staying_bytes, deferred_bytes, paged_bytes, changes;
};

/* Gets the backend's stats plus the promises, and returns the promises. */
struct promises td_ledger_totals(unsigned slot, struct td_memory_stats *ret);
/*
 * Returns the memory of a slot, with the bytes promised to calls that have not allocated them yet.
 * The ledger's lock is held at the return, so that the figures stay true until it is dropped.
 */
void td_ledger_lock_totals(struct ledger *ledger, unsigned slot, struct td_memory_stats *ret);

/*
 * Raises the claim to this many bytes on the device, and including the host. The caller holds the
 * ledger's lock. False: that exceeds the ceiling, because the daemon has taken back an unused
 * grant; it has to be asked.
 */
bool td_ledger_claim(unsigned slot, uint64_t device_bytes, uint64_t all_bytes);
/* Claims the bytes of an answer. False: the daemon has taken the grant back since. */
bool td_ledger_claim_answer(struct ledger *ledger, unsigned slot, int need);
