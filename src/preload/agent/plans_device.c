/* The agent's plans, what they do in a context of the program's. */
#include <errno.h>

#include "preload/agent/plans.h"
#include "preload/agent/plans_internal.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"

/*
 * The slot's context is current for the agent, and does not end, until leave. 0; -EAGAIN: it may be
 * ending; -ENODEV: there is none that can be.
 */
static int enter(const struct td_driver *driver, unsigned slot, struct td_gpu_info *ret)
{
	if (!driver || !td_context_gpu(slot, ret) || !ret->context)
		return -ENODEV;
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

	/* Without a context there is nothing to move. */
	if (r)
		return r == -EAGAIN ? r : 0;
	r = how(slot, limit_bytes, note);
	leave(driver);
	/*
	 * The program has ended that context meanwhile: what is there of others can be moved in one
	 * of them, and of none there is nothing to move.
	 */
	return r == -ENOTRECOVERABLE && !td_context_is_alive(gpu.serial) ? -EAGAIN : r;
}
