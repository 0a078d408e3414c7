/*
 * Is a daemon that somebody here waits for alive? Its connection stays open when it is stopped, so
 * it is asked (PING), but only while a
 * thread waits for it: an idle program sends nothing. No clock, no I/O.
 *
 * Time counts only as far as the agent looks: a process that was stopped itself, perhaps together
 * with the daemon, or whose agent was busy
 * moving memory, does not take its own absence for the daemon's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* Waiting is usual, as turns last seconds, and a node may have a thousand who wait. */
#define TD_HEARTBEAT_ASK_NS (2 * TD_NS_PER_S)
/*
 * The daemon answers within a turn of its loop, well under a millisecond; on a machine with many
 * more busy threads than processors, and under a
 * sanitizer, within some hundred. To give up a daemon that is only slow costs a registration, and
 * memory moved in vain; so there is a
 * wide margin.
 */
#define TD_HEARTBEAT_SILENT_NS (5 * TD_NS_PER_S)
/* The agent looks once a second at least. The most that one look counts. */
#define TD_HEARTBEAT_LOOK_NS (2 * TD_NS_PER_S)

enum td_heartbeat_verdict {
	TD_HEARTBEAT_FINE,
	TD_HEARTBEAT_ASK,    /* send PING */
	TD_HEARTBEAT_SILENT, /* it was asked, and has said nothing for so long */
};

struct td_heartbeat {
	bool asked;
	uint64_t looked_ns,
		unheard_ns; /* the last look; counted since anything was heard, or asked */
};

/* The daemon has said something. Zeros are one that has not been looked at. */
void td_heartbeat_heard(struct td_heartbeat *beat);
enum td_heartbeat_verdict td_heartbeat_look(struct td_heartbeat *beat, bool waits, uint64_t now_ns);
