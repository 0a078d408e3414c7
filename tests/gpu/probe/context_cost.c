/* Question 9: what a context costs. */
#include "probe.h"

const char probe_name[] = "context_cost";
const char probe_question[] =
	"What does a context cost in memory and time, with and without lazy loading?";

int probe_role(const char *role)
{
	uint64_t t = probe_now_ns();

	(void)role;
	probe_begin();
	probe_say("%f", probe_us_since(t));
	t = probe_now_ns();
	(void)probe_kernel("nothing");
	probe_say("%f", probe_us_since(t));
	probe_say("loaded");
	probe_listen();
	return 0;
}

static void one_way(const char *loading, const char *extra)
{
	static struct probe_series start, load, memory;

	for (int i = 0; i < (probe_quick ? 1 : 4); i++) {
		uint64_t before = probe_free_bytes(), after;
		struct probe_child child = probe_start("context", extra);

		probe_add(&start, probe_number(&child) / 1e3);
		probe_add(&load, probe_number(&child) / 1e3);
		(void)probe_line(&child);
		after = probe_free_bytes();
		probe_add(&memory, ((double)before - (double)after) / 1048576);
		probe_tell(&child, "go");
		(void)probe_end(&child, 10000);
		probe_sleep_ms(probe_quick ? 10 : 300); /* its memory comes back after it is gone */
	}
	probe_figure(&start, "ms", "cuInit and primary context, %s", loading);
	probe_figure(&load, "ms", "load of a module, %s", loading);
	probe_figure(&memory, "MiB", "memory of a context with a module, %s", loading);
}

void probe_run(void)
{
	probe_begin();
	one_way("lazy", "CUDA_MODULE_LOADING=LAZY");
	one_way("eager", "CUDA_MODULE_LOADING=EAGER");
	probe_answer("measured by what is free before and after, in another process");
}
