/* Question 21: a signal amid a kernel. */
#include "probe.h"

#include <signal.h>

const char probe_name[] = "signals";
const char probe_question[] = "How long does a process take to end that is killed amid a kernel, "
			      "and what does its neighbour notice?";

int probe_role(const char *role)
{
	(void)role;
	probe_begin();
	probe_spin(NULL, 2u * (unsigned)probe_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
		probe_quick ? 300000000 : 3000000000);
	probe_say("running");
	(void)cu.cuCtxSynchronize();
	return 0;
}

static double until_gone(int number)
{
	struct probe_child child = probe_start("victim", NULL);
	uint64_t t;

	(void)probe_line(&child);
	probe_sleep_ms(50);
	t = probe_now_ns();
	kill(child.pid, number);
	(void)probe_end(&child, 20000);
	return probe_us_since(t) / 1e3;
}

void probe_run(void)
{
	static struct probe_series term, killed;
	CUresult neighbour;

	probe_begin();
	for (int i = 0; i < (probe_quick ? 1 : 3); i++) {
		probe_add(&term, until_gone(SIGTERM));
		probe_add(&killed, until_gone(SIGKILL));
	}
	probe_spin(NULL, 1, 1000000);
	neighbour = cu.cuCtxSynchronize();
	probe_figure(&term, "ms", "from SIGTERM amid a kernel of 3 s until the process is gone");
	probe_figure(&killed, "ms", "from SIGKILL");
	probe_answer("the neighbour: %s", neighbour ? probe_error(neighbour) : "unharmed");
}
