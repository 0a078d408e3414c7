/*
 * Claims: how much memory this process has on a device or is about to take there, written to the
 * meter page before it is taken. So the daemon can take back a grant that is not used, even if the
 * process is stopped and may continue at any moment (proto/gate_page.h). A claim rises before
 * memory is taken, under the ledger's lock. With each report it falls to what is in use.
 */
#include "base/bounds.h"
#include "preload/base/page.h"
#include "preload/link/client_internal.h"
#include "preload/link/client_ledger.h"

static bool is_within(_Atomic uint64_t *ceiling, uint64_t bytes)
{
	uint64_t above = atomic_load(ceiling);

	return !above || bytes < above;
}

bool td_ledger_claim(unsigned slot, uint64_t device_bytes, uint64_t all_bytes)
{
	_Atomic uint64_t *device = &td_meter.page.claimed_device_bytes[slot],
			 *all = &td_meter.page.claimed_all_bytes[slot];
	uint64_t had_device = atomic_load(device), had_all = atomic_load(all);

	if (device_bytes <= had_device && all_bytes <= had_all)
		return true;
	atomic_store(device, td_max_u64(device_bytes, had_device));
	atomic_store(all, td_max_u64(all_bytes, had_all));
	atomic_thread_fence(memory_order_seq_cst);
	if ((device_bytes <= had_device ||
		    is_within(&td_gate.page.ceiling_device_bytes[slot], device_bytes)) &&
		(all_bytes <= had_all ||
			is_within(&td_gate.page.ceiling_all_bytes[slot], all_bytes)))
		return true;
	atomic_store(device, had_device);
	atomic_store(all, had_all);
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

bool td_ledger_claim_answer(struct ledger *ledger, unsigned slot, int need)
{
	struct td_memory_stats stats;
	uint64_t device = 0;
	bool r;

	if (need == TD_NEED_REFUSED)
		return true;
	td_ledger_lock_totals(ledger, slot, &stats);
	if (need == TD_NEED_DEVICE)
		device = ledger->need_bytes + stats.resident_bytes;
	r = td_ledger_claim(
		slot, device, stats.demanded_bytes + stats.paged_bytes + ledger->need_bytes);
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
	most = td_ledger_claim(slot, most, stats.demanded_bytes + stats.paged_bytes)
		       ? limit_bytes
		       : atomic_load(&td_meter.page.claimed_device_bytes[slot]);
	td_lock_drop(&ledger->lock);
	return most;
}

bool td_client_claim_move(unsigned slot, uint64_t device_bytes, uint64_t all_bytes)
{
	struct ledger *ledger = &td_ledgers[slot];
	struct td_memory_stats stats;
	bool r;

	td_ledger_lock_totals(ledger, slot, &stats);
	r = td_ledger_claim(slot, stats.resident_bytes + device_bytes,
		stats.demanded_bytes + stats.paged_bytes + all_bytes);
	td_lock_drop(&ledger->lock);
	return r;
}

void td_client_claim_only_what_is_there(unsigned slot)
{
	struct ledger *ledger = &td_ledgers[slot];
	struct td_memory_stats stats;
	_Atomic uint64_t *device = &td_meter.page.claimed_device_bytes[slot];

	td_ledger_lock_totals(ledger, slot, &stats);
	/* The backend's stats do not yet count the bytes that a fill is bringing. */
	if (!ledger->fills || stats.resident_bytes > atomic_load(device))
		atomic_store(device, stats.resident_bytes);
	atomic_store(
		&td_meter.page.claimed_all_bytes[slot], stats.demanded_bytes + stats.paged_bytes);
	td_lock_drop(&ledger->lock);
}
