/*
 * Chooses the backend; see choose.h. A thread that waits for another's choice waits only for a few
 * driver attributes, which return at once.
 */
#include "preload/driver/choose.h"

#include <stdatomic.h>
#include <string.h>

#include "cuda/movable.h"
#include "preload/base/lock.h"
#include "preload/base/opened.h"
#include "preload/base/settings.h"
#include "preload/base/thread.h"
#include "preload/driver/driver.h"

enum state {
	STATE_GIVEN,
	STATE_OPEN,
	STATE_PLAIN,
	STATE_MOVES,
	STATE_STAYS,
};

/*
 * Devices through which a process gives other hardware the address of GPU memory: network cards
 * (verbs, Omni-Path, Slingshot), disks (GPUDirect Storage), the processor (GDRCopy). The names are
 * searched anywhere in a path, because a container may mount devices elsewhere.
 */
static const char *const registering[] = {
	"/dev/infiniband/uverbs", "/dev/hfi1_", "/dev/cxi", "/dev/nvidia-fs", "/dev/gdrdrv"};

static struct td_lock lock = TD_LOCK_INIT(TD_RANK_CHOOSE);
/*
 * Held while files are listed or a connection is made, so that the child of a fork does not inherit
 * the descriptor.
 */
static struct td_lock list_lock = TD_LOCK_INIT(TD_RANK_LIST);
static _Atomic int state;
static struct td_chooser chooser;
static uint8_t given;
/*
 * `reason` and `device` are written under the lock, before the state that they explain, and never
 * again.
 */
static uint8_t reason;
static char device[64];
static bool registers(const char *path)
{
	for (size_t i = 0; i < sizeof(registering) / sizeof(registering[0]); i++)
		if (strstr(path, registering[i]))
			return true;
	return false;
}

void td_choose_hold_forks(void)
{
	td_lock_take(&list_lock);
}

void td_choose_release_forks(void)
{
	td_lock_drop(&list_lock);
}

/*
 * Returns whether the program has such a device open; if so, the path is in `device`. The caller
 * holds the lock.
 */
static bool is_registering(void)
{
	bool found;

	td_choose_hold_forks();
	found = td_opened_find(registers, device, sizeof(device));
	td_choose_release_forks();
	return found;
}

static bool all_can_move(void)
{
	const struct td_driver *driver = td_driver();
	int count = 0;

	if (!driver || driver->device_get_count(&count) || count <= 0)
		return false;
	for (int i = 0; i < count; i++)
		if (!td_is_movable(driver->device_get_attribute, i))
			return false;
	return true;
}

void td_choose_init(uint8_t kind, const struct td_chooser *by)
{
	chooser = *by;
	given = kind;
	reason = TD_BACKEND_NO_REASON;
	device[0] = '\0';
	atomic_store(&state, kind == TD_BACKEND_AUTO ? STATE_OPEN : STATE_GIVEN);
	chooser.use(kind == TD_BACKEND_AUTO ? TD_BACKEND_PLAIN : (enum td_backend_kind)kind);
}

void td_choose(void)
{
	int cancel;

	if (atomic_load_explicit(&state, memory_order_acquire) != STATE_OPEN)
		return;
	cancel = td_thread_no_cancel();
	td_lock_take(&lock);
	if (atomic_load(&state) == STATE_OPEN) {
		if (!all_can_move())
			reason = TD_BACKEND_CANNOT;
		else if (is_registering())
			reason = TD_BACKEND_REGISTERS;
		if (!reason)
			chooser.use(TD_BACKEND_SWAP);
		atomic_store(&state, reason ? STATE_PLAIN : STATE_MOVES);
	}
	td_lock_drop(&lock);
	td_thread_may_cancel(cancel);
}

void td_choice_get(struct td_choice *ret)
{
	memset(ret, 0, sizeof(*ret));
	switch ((enum state)atomic_load(&state)) {
	case STATE_GIVEN: ret->kind = given; return;
	case STATE_OPEN: ret->kind = TD_BACKEND_PLAIN; return;
	case STATE_MOVES: ret->kind = TD_BACKEND_SWAP; return;
	case STATE_PLAIN: ret->kind = TD_BACKEND_PLAIN; break;
	case STATE_STAYS: ret->kind = TD_BACKEND_SWAP; break;
	}
	ret->reason = reason;
	memcpy(ret->device, device, sizeof(device));
}

void td_choose_look(void)
{
	bool stays;

	if (atomic_load_explicit(&state, memory_order_relaxed) != STATE_MOVES)
		return;
	td_lock_take(&lock);
	stays = is_registering();
	if (stays)
		reason = TD_BACKEND_REGISTERS;
	td_lock_drop(&lock);
	if (!stays)
		return;
	chooser.stay();
	atomic_store(&state, STATE_STAYS);
}

void td_choose_before_fork(void)
{
	td_choose_hold_forks();
}

void td_choose_after_fork(void)
{
	td_choose_release_forks();
}

void td_choose_forked(void)
{
	td_lock_drop(&list_lock); /* this thread took it before the fork */
	td_lock_reset(&lock);
	td_choose_init(given, &(struct td_chooser){chooser.use, chooser.stay});
}
