/*
 * Claims: what this process has on a device, or is about to have, written where the daemon sees it before it is used. So the
 * daemon can take back what is not used, even of a process that is stopped and may go on at any moment (proto/gate_page.h).
 * A claim rises before memory is taken, under the ledger's lock, and falls to what is there with each report.
 */
#include "preload/client_internal.h"
#include "preload/client_ledger.h"
#include "preload/gate.h"

bool td_ledger_claim(unsigned slot, uint64_t bytes)
{
	_Atomic uint64_t *claimed = &td_meter.page.device_bytes[slot];
	uint64_t before = atomic_load(claimed), ceiling;

	if (bytes <= before)
		return true;
	atomic_store(claimed, bytes);
	atomic_thread_fence(memory_order_seq_cst);
	ceiling = atomic_load(&td_gate.page.ceiling_bytes[slot]);
	if (!ceiling || bytes < ceiling)
		return true;
	atomic_store(claimed, before);
	return false;
}

void td_ledger_lock_totals(struct ledger *ledger, unsigned slot, struct td_memory_stats *ret)
{
	for (;;) {
		uint64_t changes = td_ledger_totals(slot, ret).changes;

		td_lock_take(&ledger->lock);
		if (changes == ledger->changes)
			return;
		td_lock_drop(&ledger->lock);
	}
}

bool td_ledger_claim_answer(struct ledger *ledger, unsigned slot)
{
	struct td_memory_stats stats;
	bool r;

	td_ledger_lock_totals(ledger, slot, &stats);
	r = td_ledger_claim(slot, (ledger->spills ? stats.resident_bytes : stats.demanded_bytes) +
				ledger->need_bytes);
	td_lock_drop(&ledger->lock);
	return r;
}

uint64_t td_client_claim_fill(unsigned slot, uint64_t limit_bytes)
{
	struct ledger *ledger = &td_ledgers[slot];
	struct td_memory_stats stats;
	uint64_t most;

	td_ledger_lock_totals(ledger, slot, &stats);
	most = stats.demanded_bytes < limit_bytes ? stats.demanded_bytes : limit_bytes;
	if (td_ledger_claim(slot, most))
		most = limit_bytes;
	else
		most = atomic_load(&td_meter.page.device_bytes[slot]);
	td_lock_drop(&ledger->lock);
	return most;
}

void td_client_claim_only_what_is_there(unsigned slot)
{
	struct ledger *ledger = &td_ledgers[slot];
	struct td_memory_stats stats;

	td_ledger_lock_totals(ledger, slot, &stats);
	/* What it brings there is not in the stats yet. */
	if (!ledger->fills || stats.resident_bytes > atomic_load(&td_meter.page.device_bytes[slot]))
		atomic_store(&td_meter.page.device_bytes[slot], stats.resident_bytes);
	td_lock_drop(&ledger->lock);
}
