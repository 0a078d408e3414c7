/* Question 3: pinned copies, one way, both ways, from two processes. */
#include "probe.h"

const char probe_name[] = "copies";
const char probe_question[] =
	"How fast are pinned copies one way, both ways at once, and from two processes?";

static uint64_t bytes;
static void *host[2];
static CUdeviceptr device[2];
static CUstream streams[2];

static void prepare(void)
{
	bytes = probe_within(probe_quick ? 4u << 20 : 512u << 20);
	for (int i = 0; i < 2; i++) {
		MUST(cuMemHostAlloc, &host[i], bytes, 0);
		MUST(cuMemAlloc_v2, &device[i], bytes);
		MUST(cuStreamCreate, &streams[i], CU_STREAM_NON_BLOCKING);
	}
}

/* GB/s of both directions together. */
static double move(bool in, bool out)
{
	uint64_t t = probe_now_ns();

	if (in)
		MUST(cuMemcpyHtoDAsync_v2, device[0], host[0], bytes, streams[0]);
	if (out)
		MUST(cuMemcpyDtoHAsync_v2, host[1], device[1], bytes, streams[1]);
	MUST(cuStreamSynchronize, streams[0]);
	MUST(cuStreamSynchronize, streams[1]);
	return (double)bytes * (in + out) / probe_us_since(t) / 1e3;
}

int probe_role(const char *role)
{
	(void)role;
	probe_begin();
	prepare();
	(void)move(true, false);
	probe_say("ready");
	probe_listen();
	for (int i = 0; i < (probe_quick ? 2 : 10); i++)
		probe_say("%f", move(true, false));
	return 0;
}

static void two_processes(void)
{
	static struct probe_series rate;
	struct probe_child children[2] = {probe_start("copier", NULL), probe_start("copier", NULL)};

	for (int i = 0; i < 2; i++)
		(void)probe_line(&children[i]);
	for (int i = 0; i < 2; i++)
		probe_tell(&children[i], "go");
	for (int k = 0; k < (probe_quick ? 2 : 10); k++)
		for (int i = 0; i < 2; i++)
			probe_add(&rate, probe_number(&children[i]));
	for (int i = 0; i < 2; i++)
		(void)probe_end(&children[i], 5000);
	probe_figure(&rate, "GB/s", "in, each of two processes at once");
}

void probe_run(void)
{
	static struct probe_series in, out, both;

	probe_begin();
	prepare();
	for (int i = 0; i < (probe_quick ? 3 : 12); i++) {
		double a = move(true, false), b = move(false, true), c = move(true, true);

		if (!i)
			continue; /* the first touches everything */
		probe_add(&in, a);
		probe_add(&out, b);
		probe_add(&both, c);
	}
	probe_figure(&in, "GB/s", "host to device");
	probe_figure(&out, "GB/s", "device to host");
	probe_figure(&both, "GB/s", "both at once, together");
	two_processes();
	probe_answer("copies of %llu MiB measured", (unsigned long long)bytes >> 20);
}
