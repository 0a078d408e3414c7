/* Question 22: which membarrier commands are allowed here. No GPU is needed. */
#include "probe.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

const char probe_name[] = "membarrier";
const char probe_question[] =
	"Which membarrier commands are allowed, and what does a private expedited barrier cost?";

void probe_run(void)
{
	static struct probe_series cost;
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	long registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);

	if (commands < 0)
		probe_answer("membarrier is refused: libtandem fences in every thread");
	for (int i = 0; !registered && i < 1000; i++) {
		uint64_t t = probe_now_ns();

		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
		probe_add(&cost, probe_us_since(t));
	}
	probe_figure(&cost, "us", "private expedited barrier, one thread");
	probe_answer("commands 0x%lx; private expedited %s", commands,
		registered ? "refused" : "allowed");
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
