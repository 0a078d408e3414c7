/* Decides whether the daemon is alive; heartbeat.h describes the rules. */
#include "preload/agent/heartbeat.h"

void td_heartbeat_heard(struct td_heartbeat *beat)
{
	beat->asked = false;
	beat->unheard_ns = 0;
}

enum td_heartbeat_verdict td_heartbeat_look(struct td_heartbeat *beat, bool waits, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - beat->looked_ns;

	beat->looked_ns = now_ns;
	if (!waits) {
		td_heartbeat_heard(beat);
		return TD_HEARTBEAT_FINE;
	}
	beat->unheard_ns += since_ns < TD_HEARTBEAT_LOOK_NS ? since_ns : TD_HEARTBEAT_LOOK_NS;
	if (beat->asked)
		return beat->unheard_ns < TD_HEARTBEAT_SILENT_NS ? TD_HEARTBEAT_FINE
								 : TD_HEARTBEAT_SILENT;
	if (beat->unheard_ns < TD_HEARTBEAT_ASK_NS)
		return TD_HEARTBEAT_FINE;
	beat->asked = true;
	beat->unheard_ns = 0;
	return TD_HEARTBEAT_ASK;
}
