/*
 * How well steps are found in streams of work whose truth is known, and the cost of a call. Streams
 * are on a simulated clock, 2000 steps each: the calls of a training program in the manner of
 * PyTorch, with its noise, phases and varying lengths. Prints for each: after how many steps the
 * last wrong mark (a layer, say) was given up; from the 20th on, how many steps were missed or
 * invented, and the error of a step's time.
 *
 * usage: period
 */
#include <string.h>

#include "base/time.h"
#include "bench/row.h"
#include "preload/measure/period.h"
#include "policy_random.h"

#define STEPS   2000u
#define SKIPPED 20u
#define US      TD_NS_PER_US
#define MS      TD_NS_PER_MS

enum { COPY = 1, SYNC, UPDATE, LOG, VALIDATE = 50, FORWARD = 100, BACKWARD = 200 };

static struct td_period period;
static uint64_t now, seed;
static double errors[2 * STEPS];
static uint32_t found, settled, step;
static bool validates;    /* what is found now is none of the steps */
static uint64_t truth_ns; /* of the step under way */
static uint64_t
	before_ns; /* the mark may be anywhere in a step, so that of the one before it is as true */

static double error_of(uint64_t ns, uint64_t truth)
{
	double error = 100.0 * ((double)ns / (double)truth - 1);

	return error < 0 ? -error : error;
}

static void call(uint32_t signature, uint64_t ns)
{
	struct td_period_step end;
	double error;

	now += ns;
	if (td_period_event(&period, signature, now, &end) != TD_PERIOD_STEP || validates)
		return;
	error = error_of(end.step_ns, truth_ns);
	if (error_of(end.step_ns, before_ns) < error)
		error = error_of(end.step_ns, before_ns);
	if (error > 50)
		settled = step + 1;
	if (step >= SKIPPED && found < 2 * STEPS)
		errors[found++] = error;
}

static uint64_t about(uint64_t ns, uint32_t percent)
{
	return ns - ns * percent / 100 + random_below(&seed, 2001) * (ns * percent / 100) / 1000;
}

/* launch_ns: of each call on the host; a step takes step_ns, or as long as its calls. */
static void train(uint32_t layers, uint64_t launch_ns, uint64_t step_ns)
{
	uint64_t began = now, calls = 2 + layers * 11 + 30;

	before_ns = truth_ns;
	truth_ns = calls * launch_ns > step_ns ? calls * launch_ns : step_ns;
	call(COPY, launch_ns);
	for (uint32_t i = 0; i < layers * 4; i++)
		call(FORWARD + i % 4, launch_ns);
	for (uint32_t i = 0; i < layers * 7; i++)
		call(BACKWARD + i % 7, launch_ns);
	for (uint32_t i = 0; i < 30; i++)
		call(UPDATE, launch_ns);
	call(SYNC, launch_ns);
	now = began + truth_ns;
	step++;
}

static void steady(void)
{
	train(24, 8 * US, about(100 * MS, 3));
}

static void as_slow_as_the_gpu(void)
{
	train(24, about(400 * US, 3), 0);
}

static void tiny_steps(void)
{
	train(2, 8 * US, about(3 * MS, 10));
}

static void noisy(void)
{
	train(12, 8 * US, about(100 * MS, 30));
	if (!random_below(&seed, 10)) {
		call(LOG, MS);
		call(LOG + 1, MS);
	}
}

static void phases(void)
{
	train(12, 8 * US, about(80 * MS, 2));
	if (step % 100)
		return;
	validates = true;
	for (int batch = 0; batch < 20; batch++) {
		call(COPY, 20 * US);
		for (uint32_t k = 0; k < 48; k++)
			call(VALIDATE + k % 6, 5 * US);
		call(SYNC, 30 * MS);
	}
	validates = false;
	now += 400 * MS;
}

static void sentences(void)
{
	uint64_t length = 60 + random_below(&seed, 81), began = now;

	before_ns = truth_ns;
	truth_ns = length * MS;
	call(COPY, 10 * US);
	for (uint64_t k = 0; k < length; k++)
		call(FORWARD + (uint32_t)k % 12, 10 * US);
	call(LOG + random_below(&seed, 3), 10 * US);
	call(UPDATE, 10 * US);
	call(SYNC, 10 * US);
	now = began + truth_ns;
	step++;
}

static void begin(uint64_t with)
{
	memset(&period, 0, sizeof(period));
	now = 1000 * MS;
	seed = with * 0x9e3779b97f4a7c15ull;
	found = settled = step = 0;
	truth_ns = before_ns = 1;
}

static void measure(const char *name, void (*one)(void), uint64_t with)
{
	char figure[96];
	double value;

	begin(with);
	while (step < STEPS)
		one();
	value = settled;
	snprintf(figure, sizeof(figure), "%s: last wrong mark given up after steps", name);
	bench_row(figure, "", &value, 1);
	value = 100.0 * ((double)found / (STEPS - SKIPPED) - 1);
	snprintf(figure, sizeof(figure), "%s: steps made up, or missed (-)", name);
	bench_row(figure, "%", &value, 1);
	snprintf(figure, sizeof(figure), "%s: error of a step's time", name);
	bench_row(figure, "%", errors, found);
}

/* No period: the share of the time that was taken for steps. */
static void measure_none(void)
{
	double shares[50];

	for (unsigned run = 0; run < 50; run++) {
		struct td_period_step end;
		uint64_t sum = 0, began;

		begin(run + 1);
		began = now;
		for (int i = 0; i < 20000; i++) {
			now += random_below(&seed, 2000) * US;
			if (td_period_event(&period, 1 + random_below(&seed, 40), now, &end) ==
				TD_PERIOD_STEP)
				sum += end.step_ns;
		}
		shares[run] = 100.0 * (double)sum / (double)(now - began);
	}
	bench_row("no period at all: time taken for steps", "%", shares, 50);
}

static void measure_cost(const char *name, void (*one)(void), uint64_t with)
{
	static double ns[101];
	char figure[96];

	begin(with);
	for (unsigned i = 0; i < 20; i++)
		one();
	for (unsigned round = 0; round < 101; round++) {
		uint64_t events = period.events, began = td_time_now_ns();

		for (unsigned i = 0; i < 20; i++)
			one();
		ns[round] = (double)(td_time_now_ns() - began) / (double)(period.events - events);
		found = 0;
	}
	snprintf(figure, sizeof(figure), "a call, %s", name);
	bench_row(figure, "ns", ns, 101);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*one)(void);
	} streams[] = {{"steady, 100 ms", steady}, {"at the GPU's pace", as_slow_as_the_gpu},
		{"3 ms", tiny_steps}, {"noise of 30 %, extra calls", noisy},
		{"validation every 100 steps", phases}, {"varying lengths", sentences}};

	for (unsigned i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		measure(streams[i].name, streams[i].one, i + 1);
	measure_none();
	measure_cost("24 layers", steady, 1);
	measure_cost("3 ms steps", tiny_steps, 1);
	return 0;
}
