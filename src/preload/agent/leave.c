/* Carries out LEAVE, the daemon's request that the program end; see leave.h. */
#include "preload/agent/leave.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "preload/base/agent_calls.h"
#include "preload/base/caught.h"
#include "proto/proto.h"
#include "proto/words.h"

#define NEVER UINT64_MAX

static struct {
	bool asked, drains;
	enum td_leaving how;
	uint64_t until_ns;
} leave;

static enum td_leaving how_it_ends(void)
{
	struct sigaction action;

	if (td_caught_action(SIGTERM, NULL, &action) || action.sa_handler == SIG_DFL)
		return TD_LEAVING_ENDS;
	return action.sa_handler == SIG_IGN ? TD_LEAVING_IGNORES : TD_LEAVING_HANDLES;
}

/* The signal goes to the process, because this thread blocks all signals. */
static void raise_once(void)
{
	leave.asked = false;
	(void)kill(getpid(), SIGTERM);
}

void td_leave_asked(
	const struct td_msg_leave *msg, void (*send)(const struct td_msg *msg), uint64_t now_ns)
{
	struct td_msg leaving = {.type = TD_MSG_TYPE_leaving};

	leave.how = how_it_ends();
	leave.drains = msg->drains && leave.how != TD_LEAVING_HANDLES;
	leave.until_ns = now_ns < NEVER - msg->patience_ns ? now_ns + msg->patience_ns : NEVER;
	leave.asked = true;
	leaving.leaving.how = (uint8_t)leave.how;
	send(&leaving);
}

uint64_t td_leave_step(uint64_t now_ns)
{
	if (!leave.asked)
		return NEVER;
	if (leave.drains && !td_plans_is_still() && now_ns < leave.until_ns)
		return leave.until_ns;
	raise_once();
	return NEVER;
}

void td_leave_lost(void)
{
	leave.drains = false;
}

void td_leave_forked(void)
{
	memset(&leave, 0, sizeof(leave));
}
