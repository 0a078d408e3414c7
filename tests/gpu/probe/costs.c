/* Question 5: what events and launches cost the host. */
#include "probe.h"

const char probe_name[] = "costs";
const char probe_question[] = "What do event record, query, synchronise and a launch cost on an "
			      "idle and on a busy stream?";

static void measure(const char *state, CUstream stream, uint64_t busy_ns)
{
	static struct probe_series record, query, launch, wait;
	CUfunction nothing = probe_kernel("nothing");
	CUevent event;

	MUST(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	for (int i = 0; i < (probe_quick ? 8 : 400); i++) {
		uint64_t t;

		if (busy_ns)
			probe_spin(stream, 1, busy_ns);
		t = probe_now_ns();
		MUST(cuEventRecord, event, stream);
		probe_add(&record, probe_us_since(t));
		t = probe_now_ns();
		(void)cu.cuEventQuery(event);
		probe_add(&query, probe_us_since(t));
		t = probe_now_ns();
		probe_must(probe_launch(nothing, 1, 1, stream, NULL), "cuLaunchKernel");
		probe_add(&launch, probe_us_since(t));
		MUST(cuStreamSynchronize, stream);
		t = probe_now_ns();
		MUST(cuEventSynchronize, event);
		probe_add(&wait, probe_us_since(t));
	}
	probe_figure(&record, "us", "event record, %s", state);
	probe_figure(&query, "us", "event query, %s", state);
	probe_figure(&launch, "us", "launch, %s", state);
	probe_figure(&wait, "us", "synchronise with an event that has passed, %s", state);
}

void probe_run(void)
{
	static struct probe_series empty;
	CUstream stream;

	probe_begin();
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	measure("idle", stream, 0);
	measure("busy", stream, probe_quick ? 100000 : 500000);
	for (int i = 0; i < (probe_quick ? 8 : 200); i++) {
		uint64_t t = probe_now_ns();

		probe_must(probe_launch(probe_kernel("nothing"), 1, 1, stream, NULL),
			"cuLaunchKernel");
		MUST(cuStreamSynchronize, stream);
		probe_add(&empty, probe_us_since(t));
	}
	probe_figure(&empty, "us", "launch and wait for an empty kernel");
	probe_answer("measured");
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
