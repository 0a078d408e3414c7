/* This file implements account.h. */
#include "daemon/model/sharing/account.h"

#include <assert.h>

#include "base/bounds.h"

static uint64_t bound_of(const struct td_holding *h)
{
	return h->told == TD_UNBOUNDED ? 0 : h->told;
}

void td_holding_tell(struct td_holding *h, uint64_t bytes, uint32_t seq)
{
	assert((int32_t)(seq - h->seq) > 0);
	h->told = bytes;
	h->seq = seq;
	h->believed = td_max_u64(h->believed, bound_of(h));
}

void td_holding_used(struct td_holding *h, uint64_t bytes, uint32_t acked)
{
	h->used = bytes;
	h->acked = acked;
	if (td_holding_is_heard(h))
		h->believed = bound_of(h);
	assert(h->believed >= bound_of(h));
}

void td_holding_take_back(struct td_holding *h, uint64_t claimed_bytes)
{
	uint64_t charge = td_holding_charge(h);

	/*
	 * The holder is not trusted to claim more than it may have, or less than it says that it
	 * uses.
	 */
	h->believed = td_max_u64(claimed_bytes < charge ? claimed_bytes : charge, h->used);
	if (h->told > h->believed)
		h->told = h->believed;
}

uint64_t td_account_left(const struct td_account *account)
{
	if (account->limit == TD_UNBOUNDED)
		return TD_UNBOUNDED;
	return account->limit > account->charged ? account->limit - account->charged : 0;
}

uint64_t td_account_room(const struct td_account *account, const struct td_holding *h)
{
	uint64_t others = account->charged - td_holding_charge(h);

	if (account->limit == TD_UNBOUNDED)
		return TD_UNBOUNDED;
	return account->limit > others ? account->limit - others : 0;
}

void td_account_tell(struct td_account *account, struct td_holding *h, uint64_t bytes, uint32_t seq)
{
	uint64_t before = td_holding_charge(h), rises;

	assert(account->charged >= before);
	td_holding_tell(h, bytes, seq);
	rises = td_holding_charge(h) - before;
	account->charged += rises;
	assert(!rises || account->charged <= account->limit);
}

void td_account_used(
	struct td_account *account, struct td_holding *h, uint64_t bytes, uint32_t acked)
{
	uint64_t before = td_holding_charge(h);

	assert(account->charged >= before);
	td_holding_used(h, bytes, acked);
	account->charged += td_holding_charge(h) - before;
}
