/* tandem metrics: prints one round of the daemon in the text format of Prometheus. */
#include "base/time.h"
#include "cli/cli.h"
#include "view/metrics.h"

static void take_row(const struct td_msg *msg, void *arg)
{
	(void)td_snapshot_take(arg, msg);
}

static int print(struct td_snapshot *snapshot)
{
	struct td_text text = {0};

	td_metrics_write(&text, snapshot);
	if (text.failed) {
		td_text_deinit(&text);
		return td_cli_fail("metrics: there is no memory");
	}
	fwrite(text.text, 1, text.length, stdout);
	td_text_deinit(&text);
	return 0;
}

int td_verb_metrics(int argc, char **argv)
{
	static const uint32_t requests[] = {TD_MSG_TYPE_list_gpus, TD_MSG_TYPE_list_jobs};
	struct td_snapshot snapshot;
	int status = 0;

	if (argc > 1)
		return td_cli_fail("\"%.64s\" is not expected: metrics has no options", argv[1]);
	td_snapshot_init(&snapshot);
	for (unsigned i = 0; i < 2 && !status; i++)
		status = td_cli_ask(&(struct td_msg){.type = requests[i]}, take_row, &snapshot);
	snapshot.time_ns = td_time_now_ns();
	status = status ? status : print(&snapshot);
	td_snapshot_deinit(&snapshot);
	return status;
}
