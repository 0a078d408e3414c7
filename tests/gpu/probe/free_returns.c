/* Question 7: when cuMemFree returns, and when the memory is there again. */
#include "probe.h"

const char probe_name[] = "free_returns";
const char probe_question[] =
	"When does cuMemFree return while work runs, and when is the memory usable again?";

void probe_run(void)
{
	uint64_t bytes, busy_ns = probe_quick ? 20000000 : 200000000;
	static struct probe_series idle, busy;
	uint64_t before, after;
	CUstream stream;
	CUdeviceptr at;

	probe_begin();
	bytes = probe_within(probe_quick ? 8u << 20 : 1u << 30);
	MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < (probe_quick ? 2 : 10); i++) {
		uint64_t t;

		MUST(cuMemAlloc_v2, &at, bytes);
		t = probe_now_ns();
		MUST(cuMemFree_v2, at);
		probe_add(&idle, probe_us_since(t));
		MUST(cuMemAlloc_v2, &at, bytes);
		probe_spin(stream, 1, busy_ns);
		before = probe_free_bytes();
		t = probe_now_ns();
		MUST(cuMemFree_v2, at);
		probe_add(&busy, probe_us_since(t));
		after = probe_free_bytes();
		MUST(cuCtxSynchronize);
	}
	probe_figure(&idle, "us", "free on an idle context");
	probe_figure(&busy, "us", "free while a kernel of %llu ms runs on another stream",
		(unsigned long long)busy_ns / 1000000);
	probe_answer(
		"after a free beside a running kernel %s of the memory is shown as free at once",
		after >= before + bytes ? "all" : "not all");
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
