/* This file implements pressure.h. */
#include "daemon/server/machine/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "daemon/execute/actions.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"

#define LOOK_NS TD_NS_PER_S

void td_pressure_watch_init(struct td_pressure_watch *watch)
{
	*watch = (struct td_pressure_watch){.path = "/proc/pressure/memory"};
}

/* Reads the kernel's figures. Returns 0 or -errno. */
static int read_psi(const char *path, struct td_psi *ret)
{
	char text[512];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	text[n] = 0;
	return td_psi_parse(text, ret);
}

/* Logs once that the figures are missing. That does not change while the machine runs. */
static void complain(struct td_pressure_watch *watch, int r)
{
	if (!watch->complained)
		td_log(TD_LOG_WARN,
			"path=%s %s: nobody is evicted for memory pressure; a kernel with PSI "
			"tells it "
			"(CONFIG_PSI, psi=1)",
			watch->path, strerror(-r));
	watch->complained = true;
}

/* Returns whether an eviction of the process's job was tried a while ago and failed. */
static bool resists(const struct td_node *node, const struct td_process *process)
{
	const struct td_act *act = td_actions_of(node, process, TD_ACTION_EVICT);

	return act && td_act_has_ended(act) && act->state != TD_ACTION_DONE;
}

/* Returns the newest process of a besteffort job that can be evicted, or NULL. */
static const struct td_process *newest_besteffort(const struct td_node *node)
{
	const struct td_process *newest = NULL;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_process *process =
			td_container_of(it, struct td_client, of_node)->process;

		if (process->job->settings.class == TD_CLASS_BESTEFFORT &&
			!process->leave.asked_ns && !resists(node, process))
			newest = process;
	}
	return newest;
}

static void evict(struct td_node *node, const struct td_psi *psi, uint64_t now_ns)
{
	const struct td_process *process = newest_besteffort(node);
	char detail[96];

	if (!process)
		return;
	snprintf(detail, sizeof(detail), "memory pressure of %.1f %%: it is evicted",
		psi->full_ppm / 10000.0);
	td_node_event(node, TD_EVENT_ACTION, process, TD_GPU_ANY, now_ns, 0, 0, detail);
	td_actions_evict(node, process, now_ns);
}

uint64_t td_pressure_watch_turn(
	struct td_pressure_watch *watch, struct td_node *node, uint64_t now_ns)
{
	struct td_pressure_params params = td_pressure_default;
	struct td_psi psi;
	int r;

	params.full_ppm = node->options.pressure_ppm;
	if (!params.full_ppm || !newest_besteffort(node))
		return UINT64_MAX;
	if (now_ns < watch->look_ns)
		return watch->look_ns;
	watch->look_ns = now_ns + LOOK_NS;
	r = read_psi(watch->path, &psi);
	if (r)
		complain(watch, r);
	else if (td_pressure_step(&watch->pressure, &params, &psi, now_ns))
		evict(node, &psi, now_ns);
	return watch->look_ns;
}
