/* Question 8: how the driver shares a GPU between processes in time. */
#include "probe.h"

#include <stdlib.h>
#include <string.h>

const char probe_name[] = "slices";
const char probe_question[] =
	"How long is a time slice between two busy processes, and how do two unequal ones share?";

#define PAIRS_MAX 8192u

/* A kernel writes down when it ran. role: "full" or "small", how much of the GPU it fills. */
int probe_role(const char *role)
{
	unsigned long long ns = probe_quick ? 30000000 : 1000000000, gap_ns = 20000, *pairs;
	unsigned most = PAIRS_MAX, blocks;
	CUdeviceptr at;
	void *params[] = {&at, &most, &ns, &gap_ns};

	probe_begin();
	blocks = strcmp(role, "small")
			 ? 2u * (unsigned)probe_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
			 : 1;
	MUST(cuMemAlloc_v2, &at, PAIRS_MAX * 16);
	MUST(cuMemsetD32_v2, at, 0, PAIRS_MAX * 4);
	probe_say("ready");
	probe_listen();
	probe_must(
		probe_launch(probe_kernel("watch"), blocks, 128, NULL, params), "cuLaunchKernel");
	MUST(cuCtxSynchronize);
	pairs = calloc(PAIRS_MAX, 16);
	if (!pairs)
		return 1;
	MUST(cuMemcpyDtoH_v2, pairs, at, PAIRS_MAX * 16);
	for (unsigned i = 0; i < PAIRS_MAX - 1 && pairs[2 * i]; i++)
		probe_say("%f", (double)(pairs[2 * i + 1] - pairs[2 * i]) / 1e3);
	probe_say("end");
	return 0;
}

static double beside(const char *role)
{
	static struct probe_series slice;
	struct probe_child children[2] = {probe_start("full", NULL), probe_start(role, NULL)};
	double total[2] = {0};

	for (int i = 0; i < 2; i++)
		(void)probe_line(&children[i]);
	for (int i = 0; i < 2; i++)
		probe_tell(&children[i], "go");
	for (int i = 0; i < 2; i++) {
		for (;;) {
			const char *line = probe_line(&children[i]);

			if (!*line || !strcmp(line, "end"))
				break;
			total[i] += atof(line);
			if (!i)
				probe_add(&slice, atof(line));
		}
		(void)probe_end(&children[i], 5000);
	}
	probe_figure(&slice, "us", "uninterrupted stretch of a full process beside a %s one", role);
	return total[0] + total[1] > 0 ? total[0] / (total[0] + total[1]) : 0;
}

void probe_run(void)
{
	double equal, unequal;

	probe_begin();
	equal = beside("full");
	unequal = beside("small");
	probe_value(100 * equal, "%", "share of the first of two full processes, by stretches");
	probe_value(100 * unequal, "%", "share of the full process beside one of a single block");
	probe_answer("see the figures; stretches are those in which one thread lost the GPU for "
		     "less than 20 us");
}
