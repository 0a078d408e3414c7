/* The ledger of granted memory on each GPU. client.c and claims.c share it. */
#pragma once

#include "preload/base/backend.h"
#include "preload/base/lock.h"
#include "preload/link/client.h"

enum need_state {
	NEED_NONE,
	NEED_ASKED, /* left for the agent */
	NEED_SENT,
	NEED_ANSWERED,
};

/* One GPU's. */
struct ledger {
	struct td_lock need_lock; /* one ASK at a time: the protocol has one ticket per slot */
	_Atomic uint32_t need;    /* enum need_state; futex */
	uint32_t ticket; /* this and the next: the asker's in NONE and ANSWERED, else the agent's */
	uint64_t need_bytes;
	uint64_t need_crossed_bytes; /* the agent's: as it was told with it */
	enum td_mobility need_mobility;
	uint32_t granted; /* valid in ANSWERED */
	_Atomic uint32_t may_defer, may_keep;
	_Atomic uint32_t memory_changed;
	_Atomic uint32_t quota_told; /* the daemon said what quota_bytes is */
	_Atomic uint64_t capacity_bytes, short_bytes;
	_Atomic uint64_t quota_bytes, soft_bytes; /* 0 unknown, UINT64_MAX none */
	struct td_lock lock;
	/*
	 * Guarded by lock. What the last GRANT lets the process have unasked: on the device, and in
	 * all. Then what was granted and is not in the backend's stats yet: on the device, there
	 * for good, off it, and paged. Changes of those are counted.
	 */
	uint64_t device_bytes, total_bytes, landing_bytes, staying_bytes, deferred_bytes,
		paged_bytes, changes;
	bool open;  /* the plan with that limit opens the gate */
	bool fills; /* the agent brings memory to the device */
	_Atomic uint64_t cached_bytes;
	_Atomic uint64_t heeded_bytes; /* of what has crossed: when the daemon answered last */
};

extern struct ledger td_ledgers[TD_SLOT_MAX];

/* Promises that are not in the backend's stats yet, at one moment. */
struct promises {
	uint64_t landing_bytes, staying_bytes, deferred_bytes, paged_bytes, changes;
};

/* The backend's stats with the promises. */
struct promises td_ledger_totals(unsigned slot, struct td_memory_stats *ret);
/* The same; returns with the ledger's lock, before they can change. */
void td_ledger_lock_totals(struct ledger *ledger, unsigned slot, struct td_memory_stats *ret);

/*
 * With the ledger's lock: the process is to have up to so many bytes on the device, and with what
 * lies on the host. False: that is more than the ceiling, as the daemon has taken back what was not
 * used; it is to be asked.
 */
bool td_ledger_claim(unsigned slot, uint64_t device_bytes, uint64_t all_bytes);
/* False: what was asked for was granted, and has been taken back since. */
bool td_ledger_claim_answer(struct ledger *ledger, unsigned slot, int need);
