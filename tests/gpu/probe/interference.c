/* Question 19: what a throughput kernel does to a latency kernel, and the other way round. */
#include "probe.h"

const char probe_name[] = "interference";
const char probe_question[] = "What happens to a kernel of 1 ms each 5 ms beside a throughput "
			      "kernel in another process, time-sliced and under MPS?";

static unsigned full(void)
{
	return 8u * (unsigned)probe_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

static void latency(struct probe_series *series, unsigned rounds)
{
	uint64_t next = probe_now_ns();

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t t = probe_now_ns();

		probe_spin(NULL, full() / 8, 1000000);
		MUST(cuCtxSynchronize);
		probe_add(series, probe_us_since(t) / 1e3);
		next += 5000000;
		while (probe_now_ns() < next)
			probe_sleep_ms(1);
	}
}

/* Throughput: kernels of a given length back to back; says how many it did. */
static int throughput(const char *role)
{
	uint64_t length_ns = (uint64_t)(role[0] - '0') * 1000000, began;
	unsigned done = 0;

	probe_begin();
	(void)probe_kernel("spin");
	probe_say("ready");
	probe_listen();
	began = probe_now_ns();
	while (probe_us_since(began) < (probe_quick ? 5e4 : 3e6)) {
		probe_spin(NULL, full(), length_ns);
		MUST(cuCtxSynchronize);
		done++;
	}
	probe_say("%f", done * (double)length_ns / 1e3 / probe_us_since(began));
	return 0;
}

/* The latency process as a client of MPS: as many rounds as are told, a line each. */
static int client(void)
{
	probe_begin();
	(void)probe_kernel("spin");
	probe_say("ready");
	for (int i = 0; i < 3; i++) {
		static struct probe_series series;

		probe_listen();
		latency(&series, probe_quick ? 5 : 300);
		for (size_t k = 0; k < series.n; k++)
			probe_say("%f", series.values[k]);
		series.n = 0;
	}
	return 0;
}

int probe_role(const char *role)
{
	return role[0] == 'c' ? client() : throughput(role);
}

static double p99(struct probe_series *series)
{
	(void)probe_median(series);
	return series->n ? series->values[series->n - 1 - series->n / 100] : 0;
}

/* In this process, or in a client of MPS: latencies beside a throughput process, as lines. */
static void report(const char *name, const char *length, const char *extra, unsigned rounds)
{
	static struct probe_series beside;
	struct probe_child child = probe_start(length, extra);

	(void)probe_line(&child);
	probe_tell(&child, "go");
	latency(&beside, rounds);
	probe_value(p99(&beside), "ms", "p99 beside kernels of %s ms, %s", length, name);
	probe_figure(&beside, "ms", "latency beside kernels of %s ms, %s", length, name);
	probe_value(100 * probe_number(&child), "%", "throughput of kernels of %s ms meanwhile, %s",
		length, name);
	(void)probe_end(&child, 5000);
}

/*
 * Under MPS this process has to be a client too, so the control daemon must exist before its
 * contexts.
 */
static bool under_mps(void)
{
	static const char *const shares[] = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=10",
		"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=90"};
	struct probe_child client;

	if (!probe_mps_start())
		return false;
	client = probe_start("client", NULL);
	(void)probe_line(&client);
	for (int i = 0; i < 3; i++) {
		static struct probe_series series;
		struct probe_child load = probe_start("1", shares[i]);

		(void)probe_line(&load);
		probe_tell(&load, "go");
		probe_tell(&client, "go");
		for (unsigned k = 0; k < (probe_quick ? 5u : 300u); k++)
			probe_add(&series, probe_number(&client));
		probe_value(p99(&series), "ms", "p99 under MPS, the other with %s", shares[i] + 34);
		probe_figure(&series, "ms", "latency under MPS, the other with %s", shares[i] + 34);
		probe_value(100 * probe_number(&load), "%",
			"throughput of the other meanwhile, with %s", shares[i] + 34);
		(void)probe_end(&load, 5000);
	}
	(void)probe_end(&client, 5000);
	probe_mps_stop();
	return true;
}

void probe_run(void)
{
	static struct probe_series alone;
	unsigned rounds = probe_quick ? 5 : 300;
	bool mps = under_mps();

	probe_begin();
	latency(&alone, rounds);
	probe_value(p99(&alone), "ms", "p99 alone");
	probe_figure(&alone, "ms", "latency alone");
	report("time-sliced", "1", NULL, rounds);
	report("time-sliced", "5", NULL, rounds);
	probe_answer("measured time-sliced%s",
		mps ? " and under MPS, where the other process had 10, 50 and 90 % of the threads"
		    : "; MPS is not here");
}
