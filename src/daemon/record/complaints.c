/* This file implements complaints.h. */
#include "daemon/record/complaints.h"

bool td_complaints_allow(
	struct td_complaints *complaints, uint64_t now_ns, uint32_t *ret_suppressed)
{
	uint64_t full_ns = complaints->full_ns > now_ns ? complaints->full_ns : now_ns;

	if (full_ns - now_ns > (TD_COMPLAINTS_BURST - 1) * TD_COMPLAINTS_EVERY_NS) {
		complaints->suppressed++;
		return false;
	}
	complaints->full_ns = full_ns + TD_COMPLAINTS_EVERY_NS;
	*ret_suppressed = complaints->suppressed;
	complaints->suppressed = 0;
	return true;
}
