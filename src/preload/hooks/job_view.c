/* Asks the daemon for the job's memory and limits; see job_view.h. */
#include "preload/hooks/job_view.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/time.h"
#include "preload/base/backend.h"
#include "preload/base/settings.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "proto/proto.h"
#include "proto/socket.h"

/*
 * The daemon's answer is awaited this long: longer than it ever takes, and short enough for a user
 * who waits for nvidia-smi.
 */
#define PATIENCE_NS TD_NS_PER_S

static void add_pid(struct td_job_view *view, uint32_t pid)
{
	for (uint32_t i = 0; i < view->pid_count; i++)
		if (view->pids[i] == pid)
			return;
	if (view->pid_count < TD_JOB_PROCESSES_MAX)
		view->pids[view->pid_count++] = pid;
}

/*
 * Adds one row of the answer: one process's memory on a GPU or, with pid 0, the GPU's limit. The
 * row of this process is skipped, because it knows its own use more exactly.
 */
static void add_row(
	struct td_job_view *view, const uint8_t *gpu_uuid, const struct td_msg_view_row *row)
{
	bool here = !memcmp(row->gpu, gpu_uuid, 16);

	if (row->pid)
		add_pid(view, row->pid);
	else if (here)
		view->limit_bytes = row->limit_bytes;
	if (here && row->pid && row->pid != (uint32_t)getpid())
		view->used_bytes += row->demanded_bytes;
	if (here)
		view->used_bytes += row->overhead_bytes;
}

/* Returns false if no daemon answered, or if it does not know the job. */
static bool ask_daemon(const uint8_t *gpu_uuid, struct td_job_view *ret)
{
	uint64_t deadline_ns = td_time_now_ns() + PATIENCE_NS;
	struct td_msg msg = {.type = TD_MSG_TYPE_view};
	td_auto_close int fd = *td_settings.job && *td_settings.socket
				       ? td_socket_connect(td_settings.socket, PATIENCE_NS)
				       : -1;
	bool known = false;

	if (fd < 0)
		return false;
	memcpy(msg.view.job, td_settings.job, sizeof(td_settings.job));
	if (td_socket_send(fd, &msg, NULL, 0))
		return false;
	while (td_time_now_ns() < deadline_ns && !td_socket_recv(fd, &msg, NULL, 0)) {
		if (msg.type == TD_MSG_TYPE_end)
			return known;
		if (msg.type != TD_MSG_TYPE_view_row)
			break;
		known = true;
		add_row(ret, gpu_uuid, &msg.view_row);
	}
	return false;
}

static uint64_t own_bytes(const uint8_t *gpu_uuid)
{
	unsigned count = td_context_gpu_count();
	struct td_memory_stats stats = {0};
	struct td_gpu_info gpu;

	for (unsigned i = 0; i < count; i++)
		if (td_context_gpu(i, &gpu) && !memcmp(gpu.uuid, gpu_uuid, 16))
			td_agent_stats(i, &stats);
	return stats.demanded_bytes + stats.paged_bytes;
}

void td_job_view(const uint8_t *gpu_uuid, uint64_t total_bytes, struct td_job_view *ret)
{
	int saved = errno, cancel = td_thread_no_cancel();

	*ret = (struct td_job_view){.limit_bytes = UINT64_MAX};
	add_pid(ret, (uint32_t)getpid());
	if (!ask_daemon(gpu_uuid, ret)) {
		*ret = (struct td_job_view){.limit_bytes = UINT64_MAX};
		add_pid(ret, (uint32_t)getpid());
		if (*td_settings.mem)
			(void)td_parse_size(td_settings.mem, total_bytes, &ret->limit_bytes, NULL);
	}
	ret->used_bytes += own_bytes(gpu_uuid);
	td_thread_may_cancel(cancel);
	errno = saved;
}
