/*
 * The part of plans.c for idleness. While other processes wait, a process that has submitted
 * nothing for a while and has no work in flight tells the daemon (IDLE). The next launch makes it
 * busy again.
 */
#include "preload/agent/plans_internal.h"

#include <string.h>

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/context/drain.h"
#include "preload/context/marker.h"
#include "preload/gate/gate.h"
#include "preload/link/client_internal.h"
#include "proto/proto.h"
#include "proto/words.h"

#define NEVER UINT64_MAX
/* The pause between two checks of an idle process rises to this. */
#define IDLE_CHECK_MAX_NS (100 * TD_NS_PER_MS)

static _Atomic bool exiting;

static struct {
	uint64_t launches, since_ns,
		/*
		 * submissions counted at the last check; since when unchanged; time of the next
		 * check
		 */
		check_ns;
	uint64_t every_ns;
	uint64_t ticket; /* the drain pass that proves idleness; 0: none is under way */
	uint64_t ticket_launches;
	bool reported;
} idle;

void td_plans_exiting(void)
{
	exiting = true;
}

void td_plans_idle_reset(void)
{
	memset(&idle, 0, sizeof(idle));
}

void td_plans_idle_look(void)
{
	idle.check_ns = 0;
}

static bool others_wait(void)
{
	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		if (td_plans_at(i)->attached && td_plans_at(i)->known &&
			td_plans_at(i)->others_wait)
			return true;
	return false;
}

static void busy(uint64_t launches, uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_want};

	if (idle.reported) {
		msg.want.word = td_gate_word();
		td_plans_send(&msg);
	}
	idle.launches = launches;
	idle.since_ns = now_ns;
	idle.every_ns = td_settings.idle_ns;
	idle.reported = false;
	idle.ticket = 0;
}

/*
 * A thread may submit between our last check and the moment when the daemon reads IDLE. So the
 * counter is checked once more after IDLE is sent.
 */
static void report_idle(uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_idle};
	uint64_t launches;

	msg.idle.launches = idle.launches;
	msg.idle.since_ns = now_ns;
	td_client_forget_want();
	idle.reported = true;
	td_plans_send(&msg);
	td_gate_barrier();
	launches = td_marker_launches();
	if (launches != idle.launches || td_marker_any_active())
		busy(launches, now_ns);
}

uint64_t td_plans_idle_step(uint32_t word, uint64_t now_ns)
{
	uint64_t launches;

	if (word & TD_WORD_CLOSED || exiting || !others_wait()) {
		idle.ticket = 0;
		idle.check_ns = 0;
		return NEVER;
	}
	launches = td_marker_launches();
	/*
	 * A thread that waits for memory is about to use it. If the turn ended now, that memory
	 * would have to leave the device again.
	 */
	if (td_client_is_allocating())
		busy(launches, now_ns);
	if (now_ns < idle.check_ns && !idle.ticket)
		return idle.check_ns;
	if (launches != idle.launches || td_marker_any_active()) {
		busy(launches, now_ns);
	} else if (!idle.reported && now_ns - idle.since_ns >= td_settings.idle_ns) {
		if (!idle.ticket && !td_drain_is_busy())
			idle.ticket = td_drain_begin();
		else if (idle.ticket && td_drain_is_done(idle.ticket))
			report_idle(now_ns);
	} else if (idle.reported && idle.every_ns < IDLE_CHECK_MAX_NS) {
		idle.every_ns *= 2;
	}
	idle.check_ns = now_ns + (idle.every_ns ? idle.every_ns : td_settings.idle_ns);
	return idle.check_ns;
}
