/* The part of plans.c that makes driver calls in one of the program's contexts. */
#include <errno.h>

#include "preload/agent/moves.h"
#include "preload/agent/plans.h"
#include "preload/agent/plans_internal.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"

/*
 * Makes the slot's context current for the agent and keeps it alive until leave(). Returns 0,
 * -EAGAIN if the context may be ending or the driver holds it, or -ENODEV if the slot has none.
 */
static int enter(const struct td_driver *driver, unsigned slot, struct td_gpu_info *ret)
{
	if (!driver || !td_context_gpu(slot, ret) || !ret->context)
		return -ENODEV;
	/* The driver would block the call until the checkpoint is over, and the agent with it. */
	if (td_moves_is_held())
		return -EAGAIN;
	if (!td_context_claim(TD_CLAIM_AGENT,
		    &(struct td_context){.handle = ret->context, .serial = ret->serial}, true))
		return -EAGAIN;
	if (!driver->ctx_push_current(ret->context))
		return 0;
	td_context_unclaim(TD_CLAIM_AGENT);
	return -ENODEV;
}

static void leave(const struct td_driver *driver)
{
	void *popped;

	(void)driver->ctx_pop_current(&popped);
	td_context_unclaim(TD_CLAIM_AGENT);
}

bool td_plans_ask_device(unsigned slot, uint64_t *ret_free, uint64_t *ret_total)
{
	const struct td_driver *driver = td_driver();
	struct td_gpu_info gpu;
	int r;

	if (enter(driver, slot, &gpu))
		return false;
	r = driver->mem_get_info(ret_free, ret_total);
	leave(driver);
	return !r;
}

int td_plans_move(unsigned slot, uint64_t limit_bytes,
	int (*how)(unsigned, uint64_t, void (*)(unsigned)), void (*note)(unsigned))
{
	const struct td_driver *driver = td_driver();
	struct td_gpu_info gpu;
	int r = how ? enter(driver, slot, &gpu) : -ENODEV;

	/* If the slot has no context there is nothing to move. */
	if (r)
		return r == -EAGAIN ? r : 0;
	r = how(slot, limit_bytes, note);
	leave(driver);
	/*
	 * The program has ended that context meanwhile, so this is no failure of the device: the
	 * caller tries again with another context of the slot.
	 */
	return r == -ENOTRECOVERABLE && !td_context_is_alive(gpu.serial) ? -EAGAIN : r;
}
