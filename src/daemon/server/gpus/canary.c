/* This file implements canary.h. */
#include "daemon/server/gpus/canary.h"

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/model/measure/hang.h"
#include "daemon/model/machine/procfs.h"
#include "gpu/canary.h"
#include "gpu/mps.h"

static void ended(struct td_source *source, uint32_t events)
{
	(void)source;
	(void)events; /* td_canary_turn(), which follows, waits for the process */
}

void td_canary_init(struct td_canary *canary, struct td_loop *loop)
{
	*canary = (struct td_canary){.source = {.fd = -1, .ready = ended}, .loop = loop};
}

static void forget(struct td_canary *canary)
{
	td_loop_remove(canary->loop, &canary->source);
	close(canary->source.fd);
	canary->source.fd = -1;
	canary->pid = 0;
}

static bool send_one(struct td_canary *canary, uint32_t uid, const struct td_mpsd *mps)
{
	char text[16];
	char *arguments[] = {(char *)"tandemd", (char *)TD_CANARY_ARGUMENT, text, NULL};

	snprintf(text, sizeof(text), "%u", uid);
	if (td_mpsd_spawn(mps, "/proc/self/exe", arguments, &canary->pid))
		return false;
	canary->source.fd = (int)syscall(SYS_pidfd_open, canary->pid, 0);
	if (canary->source.fd >= 0 && !td_loop_add(canary->loop, &canary->source))
		return true;
	kill(canary->pid, SIGKILL);
	(void)waitpid(canary->pid, NULL, 0);
	if (canary->source.fd >= 0)
		close(canary->source.fd);
	canary->source.fd = -1;
	return false;
}

/*
 * Returns whether the canary has ended; *ret is the result. A server that has ended or is in fault
 * is found elsewhere.
 */
static bool has_ended(struct td_canary *canary, enum td_canary_end *ret)
{
	int status;

	if (canary->source.fd < 0 || waitpid(canary->pid, &status, WNOHANG) != canary->pid)
		return false;
	forget(canary);
	*ret = WIFEXITED(status) && WEXITSTATUS(status) == TD_CANARY_ENDED ? TD_CANARY_WELL
									   : TD_CANARY_FAILED;
	return true;
}

static void kill_it(struct td_canary *canary)
{
	if (canary->source.fd < 0)
		return;
	kill(canary->pid, SIGKILL);
	/* A process inside the driver may take a while to end. */
	if (waitpid(canary->pid, NULL, WNOHANG) == canary->pid)
		forget(canary);
}

/*
 * Finds the user of the server. /proc is read once for each server, since this is called in every
 * turn.
 */
static bool knows_user(struct td_canary *canary, pid_t server)
{
	if (server && server != canary->server)
		canary->server = td_procfs_uid(server, &canary->uid) ? 0 : server;
	return server && server == canary->server;
}

uint64_t td_canary_turn(struct td_canary *canary, struct td_hang *hang,
	const struct td_hang_params *params, const struct td_mpsd *mps, uint64_t now_ns,
	bool *ret_hung)
{
	enum td_canary_end end;
	bool known = knows_user(canary, mps->server);

	*ret_hung = false;
	td_hang_server(hang, (int)mps->server);
	if (known)
		hang->uid = canary->uid;
	if (has_ended(canary, &end))
		td_hang_canary(hang, params, end, now_ns);
	if (td_hang_step(hang, now_ns)) {
		*ret_hung = true;
		kill_it(canary);
	}
	if (known && mps->state == TD_MPSD_READY && canary->source.fd < 0 &&
		td_hang_wants_canary(hang, now_ns)) {
		td_hang_sent(hang, params, now_ns);
		if (!send_one(canary, hang->uid, mps))
			td_hang_canary(hang, params, TD_CANARY_FAILED, now_ns);
	}
	/* A server that is not ready is tested when it is. */
	if (td_hang_wants_canary(hang, now_ns))
		return UINT64_MAX;
	return td_hang_wakeup(hang, params, now_ns);
}

void td_canary_deinit(struct td_canary *canary)
{
	if (canary->source.fd < 0)
		return;
	kill(canary->pid, SIGKILL);
	forget(canary);
}
