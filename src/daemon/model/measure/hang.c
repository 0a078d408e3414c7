/* This file implements the state machine that is drawn in hang.h. */
#include "daemon/model/measure/hang.h"

#define NEVER UINT64_MAX
#define S     1000000000ull

const struct td_hang_params td_hang_default = {
	.quiet_ns = 5 * S, .tried_ns = 2 * S, .retry_ns = 10 * S};

static void suspect(struct td_hang *hang, uint64_t now_ns)
{
	switch (hang->state) {
	case TD_HANG_QUIET:
		hang->state = TD_HANG_SUSPECT;
		hang->suspect_ns = now_ns;
		break;
	case TD_HANG_TRIED: hang->again = true; break;
	case TD_HANG_SUSPECT:
	case TD_HANG_HUNG: break;
	}
}

void td_hang_died(struct td_hang *hang, uint64_t now_ns)
{
	/*
	 * After a failed attempt, a client's death causes the next canary at once, without
	 * retry_ns.
	 */
	if (hang->state == TD_HANG_SUSPECT)
		hang->until_ns = 0;
	suspect(hang, now_ns);
}

void td_hang_server(struct td_hang *hang, int server)
{
	/*
	 * The MPS server may have had clients before the daemon found it, so their counters are
	 * kept.
	 */
	if (!hang->server)
		hang->server = server;
	if (server == hang->server)
		return;
	*hang = (struct td_hang){.server = server};
}

void td_hang_progress(struct td_hang *hang, const struct td_hang_params *params, uint64_t launched,
	uint64_t ended, uint64_t now_ns)
{
	bool begins = launched > hang->launched && !hang->waits;

	if (ended != hang->ended || begins)
		hang->ended_ns = now_ns;
	if (ended != hang->ended)
		hang->waits = false;
	hang->waits |= launched > hang->launched;
	hang->launched = launched;
	hang->ended = ended;
	if (!hang->server || !hang->waits || now_ns < hang->ended_ns + params->quiet_ns)
		return;
	/*
	 * Suspected only once: a program may have ended a measurement for the last time and be idle
	 * since.
	 */
	hang->waits = false;
	suspect(hang, now_ns);
}

bool td_hang_wants_canary(const struct td_hang *hang, uint64_t now_ns)
{
	return hang->state == TD_HANG_SUSPECT && now_ns >= hang->until_ns;
}

void td_hang_sent(struct td_hang *hang, const struct td_hang_params *params, uint64_t now_ns)
{
	hang->state = TD_HANG_TRIED;
	hang->again = false;
	hang->until_ns = now_ns + params->tried_ns;
}

void td_hang_canary(struct td_hang *hang, const struct td_hang_params *params,
	enum td_canary_end end, uint64_t now_ns)
{
	bool again = hang->again;

	if (hang->state != TD_HANG_TRIED)
		return;
	hang->state = TD_HANG_QUIET;
	hang->until_ns = end == TD_CANARY_FAILED ? now_ns + params->retry_ns : 0;
	/* If the canary could not test the server, the server stays suspect. */
	if (again || end == TD_CANARY_FAILED)
		suspect(hang, now_ns);
}

bool td_hang_step(struct td_hang *hang, uint64_t now_ns)
{
	if (hang->state != TD_HANG_TRIED || now_ns < hang->until_ns)
		return false;
	hang->state = TD_HANG_HUNG;
	return true;
}

uint64_t td_hang_wakeup(
	const struct td_hang *hang, const struct td_hang_params *params, uint64_t now_ns)
{
	switch (hang->state) {
	case TD_HANG_QUIET:
		return hang->server && hang->waits ? hang->ended_ns + params->quiet_ns : NEVER;
	case TD_HANG_SUSPECT: return hang->until_ns > now_ns ? hang->until_ns : now_ns;
	case TD_HANG_TRIED: return hang->until_ns;
	case TD_HANG_HUNG: return NEVER;
	}
	return NEVER;
}
