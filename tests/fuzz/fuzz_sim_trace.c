/* Any bytes as each kind of trace. The first byte says whether bad lines are skipped. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "sim/base/csv.h"
#include "sim/data/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void read_all(const char *text, size_t len, bool skip_bad)
{
	struct td_requests requests;
	struct td_trace trace;
	struct td_nodes nodes;
	struct td_csv csv;
	struct td_err err;

	if (td_csv_open_text(&csv, "fuzz", text, len, &err))
		return;
	if (!td_trace_take(&csv, skip_bad, &trace, &err)) {
		for (uint32_t i = 1; i < trace.count; i++)
			if (trace.jobs[i].submit_s < trace.jobs[i - 1].submit_s)
				abort();
		td_trace_deinit(&trace);
	}
	td_csv_close(&csv);
	if (td_csv_open_text(&csv, "fuzz", text, len, &err))
		return;
	if (!td_requests_take(&csv, skip_bad, &requests, &err))
		td_requests_deinit(&requests);
	td_csv_close(&csv);
	if (td_csv_open_text(&csv, "fuzz", text, len, &err))
		return;
	if (!td_nodes_take(&csv, skip_bad, &nodes, &err))
		td_nodes_deinit(&nodes);
	td_csv_close(&csv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len)
		read_all((const char *)data + 1, len - 1, data[0] & 1);
	return 0;
}
