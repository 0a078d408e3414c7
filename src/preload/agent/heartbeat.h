/*
 * Tells whether the daemon is alive while a thread waits for it. A stopped daemon keeps its
 * connections open, so the agent sends PING, but only while a thread waits: an idle program sends
 * nothing. These functions have no clock and do no I/O. Time in which the agent did not look does
 * not count, because the process itself may have been stopped, or its agent busy moving memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/*
 * PING is sent after this much silence. It is long because waiting is normal: a turn lasts seconds,
 * and a node may have a thousand waiting processes.
 */
#define TD_HEARTBEAT_ASK_NS (2 * TD_NS_PER_S)
/*
 * After this much silence the daemon counts as lost. It normally answers in well under 1 ms, and on
 * an overloaded machine or under a sanitizer within some 100 ms. The margin is wide, since giving
 * up a daemon that is only slow costs a new registration and needless moves of memory.
 */
#define TD_HEARTBEAT_SILENT_NS (5 * TD_NS_PER_S)
/*
 * One look counts at most this much silence. The agent looks at least once a second; a longer gap
 * means that the agent itself did not run.
 */
#define TD_HEARTBEAT_LOOK_NS (2 * TD_NS_PER_S)

enum td_heartbeat_verdict {
	TD_HEARTBEAT_FINE,
	TD_HEARTBEAT_ASK,    /* send PING */
	TD_HEARTBEAT_SILENT, /* PING was sent, and nothing has come for TD_HEARTBEAT_SILENT_NS */
};

struct td_heartbeat {
	bool asked;
	uint64_t looked_ns, unheard_ns; /* last look; silence since the last message or PING */
};

/*
 * A message of the daemon has come. A zeroed struct stands for a daemon that was never looked at.
 */
void td_heartbeat_heard(struct td_heartbeat *beat);
enum td_heartbeat_verdict td_heartbeat_look(struct td_heartbeat *beat, bool waits, uint64_t now_ns);
