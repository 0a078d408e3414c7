/* Question 4: the effect of touching an unmapped address on the process and on its neighbour. */
#include "probe.h"

const char probe_name[] = "unmapped";
const char probe_question[] = "What does a kernel's access to a reserved but unmapped address do "
			      "to its context, and to another process?";

int probe_role(const char *role)
{
	CUdeviceptr at, after;
	void *params[] = {&at};
	CUresult r;

	(void)role;
	probe_begin();
	MUST(cuMemAddressReserve, &at, 2u << 20, 0, 0, 0);
	(void)probe_launch(probe_kernel("poke"), 1, 1, NULL, params);
	r = cu.cuCtxSynchronize();
	probe_say("%s", probe_error(r));
	probe_say("%s", probe_error(cu.cuMemAlloc_v2(&after, 4096)));
	return 0;
}

void probe_run(void)
{
	struct probe_child child;
	char first[128], next[128];
	CUresult neighbour;

	probe_begin();
	probe_spin(NULL, 1, probe_quick ? 5000000 : 500000000);
	child = probe_start("victim", NULL);
	snprintf(first, sizeof(first), "%s", probe_line(&child));
	snprintf(next, sizeof(next), "%s", probe_line(&child));
	(void)probe_end(&child, 5000);
	neighbour = cu.cuCtxSynchronize();
	probe_answer("the access: %s; the next call of that process: %s; the neighbour: %s", first,
		next, neighbour ? probe_error(neighbour) : "unharmed");
}
