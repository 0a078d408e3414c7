/*
 * A guaranteed program and besteffort ones on one GPU, on a simulated clock. Nothing else happens
 * in this model, so the effect of the policies shows without a machine's noise.
 *
 * It runs tandem's own code for the daemon's node with its policies, each besteffort program's
 * window and duty (pace.c), and the guaranteed one's period detection (period.c). Modelled are
 *
 *   the GPU      first in, first out; a kernel that has begun ends (no time slices, nothing side by
 *                side)
 *   the host     a launch takes LAUNCH_NS, a message to the daemon and its answer WAY_NS, a sleep
 *                OVERSLEEP_NS more than was asked
 *   guaranteed   steps: work on the host, then kernels, all submitted at once or each after the one
 *                before, once or in several parts. It synchronises and may report its steps. After
 *                IDLE_NS without submission its agent reports idleness, where the plan asks for
 *                that
 *   besteffort   one program or several; from some step on each always has another kernel to submit
 *
 * Header only: one user per program.
 */
#pragma once

#include "unit/daemon/fake_node.h"
#include "policy_random.h"

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/gate/gate.h"
#include "preload/gate/pace.h"
#include "preload/gate/pacer.h"
#include "preload/measure/period.h"

#define LAUNCH_NS    5000u
#define WAY_NS       100000u
#define OVERSLEEP_NS 60000u
#define IDLE_NS      (3 * TD_NS_PER_MS)
#define STEPS_MAX    8192u
#define EVENTS_MAX   64u
#define QUEUE_MAX    1024u /* kernels that a program may have submitted and not done */
#define FILLS_MAX    4u    /* besteffort programs */

/* One kind of work of the guaranteed program. */
struct pm_phase {
	uint32_t steps; /* of it; then the next phase comes, after the last one the first */
	uint64_t host_ns, kernel_ns;
	uint32_t kernels; /* a step's */
	uint32_t parts; /* parts of a step, each with its share of host work and kernels; 0: one */
	uint64_t part_host_ns[4]; /* of each part, where they differ; 0: host_ns divided */
	uint32_t function;        /* of its kernels: other work launches others */
	double noise;             /* of the host's part, in the manner of a standard deviation */
	bool silent;              /* where steps are told, these are not: a validation */
};

struct pm_settings {
	const char *policy; /* NULL: the guaranteed program alone */
	const char *slack;
	bool told;        /* it tells its steps */
	bool waits;       /* for each kernel before it launches the next */
	uint32_t fills;   /* besteffort programs; 0: one */
	uint64_t fill_ns; /* a kernel of theirs */
	/* The same kernel takes so long each time that this many have been launched; 0: never. */
	uint64_t fill_long_ns;
	uint32_t fill_long_every;
	bool fill_long_other; /* that is another kernel */
	bool fill_copies;     /* no kernels but copies */
	bool fill_sized;      /* of which it is told how large they are: as they take */
	bool fill_threads;    /* a thread of its own for each launch */
	struct pm_phase phases[4];
	uint32_t phase_count;
	struct pm_phase second; /* of another guaranteed program, if it has any kernels */
	struct pm_result *second_result;
	uint64_t seed;
	uint32_t join_step; /* of the guaranteed program, with which the besteffort one comes */
	uint32_t fill_step; /* and that with which it has work */
	/* Steps are known from one on, and up to another; 0: always. */
	uint32_t known_from, known_to;
	/* Falsifies the report of a step; NULL: the report is true. */
	void (*lie)(struct td_msg_step *step, uint64_t now_ns);
};

/* The result of a run: the time of each step, and how long its first kernel waited. */
struct pm_result {
	uint64_t step_ns[STEPS_MAX], residual_ns[STEPS_MAX], ended_ns[STEPS_MAX];
	uint64_t filled_ns[STEPS_MAX]; /* GPU time of the besteffort programs up to its end */
	uint32_t duty_ppm[STEPS_MAX];  /* the first besteffort program's, at its end */
	uint64_t each_ns[FILLS_MAX];   /* GPU time of each besteffort program in all */
	uint32_t steps;
	bool closed; /* a besteffort program was, at some time */
};

union td_gate_static td_gate;
union td_meter_static td_meter;

/*
 * A besteffort program. During its turn its state is in the globals that its code uses; otherwise
 * it is saved here.
 */
struct pm_fill {
	struct td_pacer pacer;
	struct td_gate_page gate;
	struct td_meter_page meter; /* as the daemon sees it */
	uint64_t next_ns;
	uint64_t ends_ns[QUEUE_MAX];
	uint64_t count;
	struct td_marker slot;
	struct td_pace pace;
	struct {
		uint64_t done_ns;
		bool taken;
	} events[EVENTS_MAX];
};

/* A guaranteed program. */
struct pm_job {
	const struct pm_phase *phases;
	uint32_t phase_count;
	struct pm_result *result;
	struct fake *fake;
	struct td_period period;
	uint64_t next_ns, began_ns, launched_ns, seen_ns, seed;
	uint32_t phase, phase_steps, kernel, told_steps;
	uint64_t last_told_ns;
	bool idle, told_any;
	bool pausing; /* its host works; nothing is submitted */
};

static struct {
	struct pm_settings settings;
	struct pm_result *result;
	struct world world;
	uint64_t now_ns, gpu_free_ns, node_ns;
	struct pm_job jobs[2], *job; /* the one whose turn it is */
	bool joined, filling;
	/* messages on their way, all equally long */
	struct {
		uint64_t at_ns;
		struct fake *from;
		struct td_msg msg;
	} way[16];
	uint32_t way_first, way_count;
	/* besteffort */
	struct pm_fill fills[FILLS_MAX];
	uint32_t current; /* whose code's state is in its place */
	uint64_t slept_until_ns, filled_ns;
} pm;

static struct pm_fill *pm_current(void)
{
	return &pm.fills[pm.current];
}

static uint32_t pm_fills(void)
{
	return pm.settings.fills ? pm.settings.fills : 1;
}

/* Makes it that program's turn. */
static void pm_be(uint32_t i)
{
	struct pm_fill *before = pm_current(), *next = &pm.fills[i];

	if (i == pm.current)
		return;
	memcpy(&before->pacer, &td_pacer, sizeof(td_pacer));
	memcpy(&before->gate, &td_gate.page, sizeof(td_gate.page));
	memcpy(&before->meter, &td_meter.page, sizeof(td_meter.page));
	memcpy(&td_pacer, &next->pacer, sizeof(td_pacer));
	memcpy(&td_gate.page, &next->gate, sizeof(td_gate.page));
	memcpy(&td_meter.page, &next->meter, sizeof(td_meter.page));
	pm.current = i;
}

/* -- what pace.c finds around it -- */

uint64_t td_time_now_ns(void)
{
	return pm.now_ns;
}

void td_time_sleep_until_ns(uint64_t deadline_ns)
{
	pm.slept_until_ns = deadline_ns + OVERSLEEP_NS;
}

void td_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns, bool shared)
{
	(void)word, (void)value, (void)shared;
	pm.slept_until_ns = pm.now_ns + timeout_ns + OVERSLEEP_NS;
}

int td_context_slot(void)
{
	return 0;
}

uint64_t td_context_serial(void)
{
	return 1;
}

bool td_context_is_alive(uint64_t serial)
{
	return serial == 1;
}

int td_context_relax(void)
{
	return -1;
}

void td_context_unrelax(int before)
{
	(void)before;
}

void td_context_event_destroy(uint64_t serial, void *event)
{
	if (event && td_context_is_alive(serial))
		(void)td_driver()->event_destroy(event);
}

bool td_context_is_capturing(void *stream)
{
	(void)stream;
	return false;
}

static int pm_event_create(void **ret_event, unsigned flags)
{
	(void)flags;
	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		if (pm_current()->events[i].taken)
			continue;
		pm_current()->events[i].taken = true;
		*ret_event = &pm_current()->events[i].done_ns;
		return 0;
	}
	return 1;
}

/* First in, first out: it is over when all that was submitted before is. */
static int pm_event_record(void *event, void *stream)
{
	(void)stream;
	*(uint64_t *)event = pm.gpu_free_ns > pm.now_ns ? pm.gpu_free_ns : pm.now_ns;
	return 0;
}

static int pm_mode(int *mode)
{
	(void)mode;
	return 0;
}

static int pm_event_query(void *event)
{
	return *(uint64_t *)event <= pm.now_ns ? 0 : TD_CUDA_ERROR_NOT_READY;
}

static int pm_event_elapsed_ms(float *ret_ms, void *start, void *end)
{
	*ret_ms = (float)((double)(*(uint64_t *)end - *(uint64_t *)start) / 1e6);
	return 0;
}

static int pm_event_destroy(void *event)
{
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		if (event == &pm_current()->events[i].done_ns)
			pm_current()->events[i].taken = false;
	return 0;
}

const struct td_driver *td_driver(void)
{
	static const struct td_driver driver = {
		.thread_exchange_capture_mode = pm_mode,
		.event_create = pm_event_create,
		.event_record = pm_event_record,
		.event_query = pm_event_query,
		.event_elapsed_ms = pm_event_elapsed_ms,
		.event_destroy = pm_event_destroy,
	};

	return &driver;
}

/* -- the GPU -- */

static uint64_t pm_run_kernel(uint64_t ns)
{
	pm.gpu_free_ns = (pm.gpu_free_ns > pm.now_ns ? pm.gpu_free_ns : pm.now_ns) + ns;
	return pm.gpu_free_ns;
}

/* -- the daemon -- */

static uint32_t pm_jobs(void)
{
	return pm.settings.second.kernels ? 2 : 1;
}

static struct fake *pm_besteffort(uint32_t i)
{
	return &pm.world.fakes[2 + i];
}

/* A besteffort program's page. */
static struct td_gate_page *pm_page(uint32_t i)
{
	return i == pm.current ? &td_gate.page : &pm.fills[i].gate;
}

static void pm_apply(uint32_t i)
{
	const struct fake *f = pm_besteffort(i);
	struct td_gate_page *page = pm_page(i);
	uint32_t before;

	if (!f->process)
		return;
	before = atomic_load(&page->word);
	atomic_store(&page->window_ns, f->pacing.window_ns);
	atomic_store(&page->duty_ppm, f->pacing.duty_ppm);
	atomic_store(&page->rivals, f->pacing.rivals);
	atomic_store(&page->pause_until_ns, f->pacing.pause_until_ns);
	atomic_store(&page->long_ns, f->pacing.long_ns);
	atomic_store(&page->long_every_ns, f->pacing.long_every_ns);
	atomic_store(&page->sharers, (uint32_t)f->pacing.sharers);
	atomic_store(&page->hold_new, (uint32_t)f->pacing.hold_new);
	atomic_store(&page->word, f->word);
	pm.result->closed |= (f->word & TD_WORD_CLOSED) != 0;
	if (f->word != before && pm.fills[i].next_ns > pm.now_ns)
		pm.fills[i].next_ns = pm.now_ns; /* woken */
}

static void pm_ask_policy(void)
{
	memcpy(&pm_current()->meter, &td_meter.page, sizeof(td_meter.page));
	pm.world.now = pm.now_ns;
	pm.node_ns = td_node_step(&pm.world.node, pm.now_ns);
	for (uint32_t i = 0; i < 2 + FILLS_MAX; i++)
		if (pm.world.fakes[i].process)
			fake_act(&pm.world, &pm.world.fakes[i]);
	for (uint32_t i = 0; i < pm_fills(); i++)
		pm_apply(i);
}

static void pm_send(const struct td_msg *msg)
{
	uint32_t i = (pm.way_first + pm.way_count++) % 16;

	if (pm.way_count > 16)
		abort();
	pm.way[i].at_ns = pm.now_ns + WAY_NS;
	pm.way[i].from = pm.job->fake;
	pm.way[i].msg = *msg;
}

static void pm_arrive(void)
{
	struct td_msg msg = pm.way[pm.way_first].msg;
	struct fake *from = pm.way[pm.way_first].from;

	pm.way_first = (pm.way_first + 1) % 16;
	pm.way_count--;
	pm.world.now = pm.now_ns;
	if (say(&pm.world, from, &msg))
		abort();
	pm_ask_policy();
}

/* -- the guaranteed program -- */

static void pm_tell_step(uint64_t step_ns, uint64_t began_ns, uint32_t unit, uint32_t sure_ppm)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_step};

	msg.step.steps = ++pm.job->told_steps;
	msg.step.step_ns = msg.step.median_ns = step_ns;
	msg.step.began_ns = began_ns;
	msg.step.unit = unit;
	msg.step.sure_ppm = sure_ppm;
	if (pm.settings.lie)
		pm.settings.lie(&msg.step, pm.now_ns);
	if (pm.job->fake->pacing.steps)
		pm_send(&msg);
}

static bool pm_is_unknown(void)
{
	const struct pm_settings *s = &pm.settings;

	return pm.job->result->steps < s->known_from ||
	       (s->known_to && pm.job->result->steps >= s->known_to);
}

/* The gate's hook, where steps are to be found. */
static void pm_call(uint32_t signature)
{
	struct td_period_step step;

	if (pm.settings.told || pm_is_unknown() || !(pm.job->fake->word & TD_WORD_STEPS))
		return;
	switch (td_period_event(&pm.job->period, signature, pm.now_ns, &step)) {
	case TD_PERIOD_STEP: pm_tell_step(step.step_ns, pm.now_ns, step.unit, step.sure_ppm); break;
	case TD_PERIOD_BREAK:
	case TD_PERIOD_NOTHING: break;
	}
}

static void pm_launch(const struct pm_phase *phase)
{
	struct td_msg want = {.type = TD_MSG_TYPE_want};

	if (pm.job->idle) {
		want.want.word = pm.job->fake->word;
		pm_send(&want);
		pm.job->idle = false;
	}
	pm.job->pausing = false;
	pm_call(0x80000000u | (phase->function + pm.job->kernel % 7));
	if (!pm.job->kernel && pm.job->result->steps < STEPS_MAX)
		pm.job->result->residual_ns[pm.job->result->steps] =
			pm.gpu_free_ns > pm.now_ns ? pm.gpu_free_ns - pm.now_ns : 0;
	pm.job->launched_ns = pm_run_kernel(phase->kernel_ns);
	pm.job->kernel++;
	pm.job->next_ns =
		pm.settings.waits ? pm.job->launched_ns + LAUNCH_NS : pm.now_ns + LAUNCH_NS;
}

static uint32_t pm_parts(const struct pm_phase *phase)
{
	return phase->parts ? phase->parts : 1;
}

static void pm_begin_part(const struct pm_phase *phase)
{
	double noise = 1 + phase->noise * random_normal(&pm.job->seed);
	uint32_t part = pm.job->kernel / (phase->kernels / pm_parts(phase));
	uint64_t host_ns = phase->part_host_ns[part % 4];

	if (!host_ns)
		host_ns = phase->host_ns / pm_parts(phase);
	pm.job->pausing = true;
	pm.job->next_ns = pm.now_ns + (uint64_t)((double)host_ns * (noise > 0.1 ? noise : 0.1));
}

static void pm_begin_step(void)
{
	pm.job->began_ns = pm.now_ns;
	pm.job->kernel = 0;
	pm_begin_part(&pm.job->phases[pm.job->phase]);
}

static void pm_end_step(void)
{
	struct pm_result *result = pm.job->result;
	const struct pm_phase *phase = &pm.job->phases[pm.job->phase];
	uint64_t ns = pm.now_ns - pm.job->began_ns;

	result->step_ns[result->steps] = ns;
	result->ended_ns[result->steps] = pm.now_ns;
	result->filled_ns[result->steps] = pm.filled_ns;
	result->duty_ppm[result->steps] = atomic_load(&pm_page(0)->word) & TD_WORD_DUTY
						  ? atomic_load(&pm_page(0)->duty_ppm)
						  : TD_PPM;
	result->steps++;
	pm_call(1); /* cuCtxSynchronize */
	if (pm.settings.told && !phase->silent && !pm_is_unknown()) {
		pm_tell_step(pm.job->told_any ? pm.now_ns - pm.job->last_told_ns : 0, pm.now_ns, 0,
			TD_PPM);
		pm.job->last_told_ns = pm.now_ns;
		pm.job->told_any = true;
	}
	if (++pm.job->phase_steps >= phase->steps) {
		pm.job->phase_steps = 0;
		pm.job->phase = (pm.job->phase + 1) % pm.job->phase_count;
	}
	pm_begin_step();
}

static void pm_guaranteed_goes_on(void)
{
	const struct pm_phase *phase = &pm.job->phases[pm.job->phase];
	bool whole = pm.job->kernel % (phase->kernels / pm_parts(phase)) == 0;

	if (pm.job->kernel < phase->kernels && (pm.job->pausing || !whole))
		pm_launch(phase);
	else if (pm.job->launched_ns > pm.now_ns)
		pm.job->next_ns = pm.job->launched_ns; /* it synchronises */
	else if (pm.job->kernel < phase->kernels)
		pm_begin_part(phase);
	else
		pm_end_step();
}

/* Returns when its agent finds it idle: nothing submitted for a while, and nothing in flight. */
static uint64_t pm_idle_at_ns(void)
{
	if (!pm.settings.policy || pm.job->idle || !pm.job->pausing || !pm.job->fake->others_wait)
		return UINT64_MAX;
	return (pm.job->launched_ns > pm.job->seen_ns ? pm.job->launched_ns : pm.job->seen_ns) +
	       IDLE_NS;
}

static void pm_say_idle(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_idle};

	msg.idle.since_ns = pm.now_ns;
	pm.job->idle = true;
	pm_send(&msg);
}

/* -- the besteffort programs -- */

static void pm_fill(uint32_t i)
{
	struct pm_fill *fill = &pm.fills[i];
	/* other lengths, other kernels */
	uint32_t work = 8 + (uint32_t)(pm.settings.fill_ns / 1000);
	uint64_t ns = pm.settings.fill_ns;
	uint64_t oldest = fill->count < QUEUE_MAX ? 0 : fill->ends_ns[fill->count % QUEUE_MAX];
	bool is_long =
		pm.settings.fill_long_every && !((fill->count + 1) % pm.settings.fill_long_every);
	uint32_t word;
	bool paced;
	static char stream;

	if (is_long) {
		ns = pm.settings.fill_long_ns;
		work += pm.settings.fill_long_other << 10;
	}
	pm_be(i);
	word = atomic_load(&td_gate.page.word);
	paced = word & (TD_WORD_WINDOW | TD_WORD_DUTY);
	fill->next_ns = UINT64_MAX;
	if (word & TD_WORD_CLOSED || !pm.filling)
		return;
	if (oldest > pm.now_ns) { /* the driver's queue is full */
		fill->next_ns = oldest;
		return;
	}
	if (paced &&
		!td_pace_may_submit(&fill->pace, &fill->slot, &stream,
			pm.settings.fill_copies
				? TD_SUBMIT_CALL | (pm.settings.fill_sized ? td_submit_size(ns) : 0)
				: work << TD_SUBMIT_WORK_SHIFT)) {
		td_pace_sleep(&fill->pace, &fill->slot, word);
		fill->next_ns = pm.slept_until_ns;
		return;
	}
	fill->ends_ns[fill->count++ % QUEUE_MAX] = pm_run_kernel(ns);
	pm.filled_ns += ns;
	pm.result->each_ns[i] += ns;
	if (paced)
		td_pace_submitted(&fill->slot);
	if (paced && pm.settings.fill_threads)
		td_pace_thread_ends(&fill->slot);
	fill->pace = (struct td_pace){0};
	fill->next_ns = pm.now_ns + LAUNCH_NS;
}

/* -- the world -- */

static void pm_join(struct fake *f, const char *name, enum td_class class)
{
	fake_hello(&pm.world, f, name, TD_BACKEND_PLAIN, false);
	f->process->job->settings.class = class;
	fake_attach(&pm.world, f, 0, 0, MIB);
	fake_want(&pm.world, f);
}

static void pm_join_guaranteed(uint32_t i)
{
	pm_join(&pm.world.fakes[i], i ? "second" : "guaranteed", TD_CLASS_GUARANTEED);
	if (td_job_set(&pm.world.fakes[i].process->job->settings, "slack", pm.settings.slack, NULL))
		abort();
}

static void pm_join_besteffort(void)
{
	pm.joined = true;
	pm.world.now = pm.now_ns;
	for (uint32_t i = 0; i < pm_fills(); i++) {
		char name[] = {'b', 'e', (char)('0' + i), '\0'};

		pm_join(pm_besteffort(i), name, TD_CLASS_BESTEFFORT);
		pm_besteffort(i)->process->meter = &pm.fills[i].meter;
	}
	settle(&pm.world);
	pm_ask_policy();
	pm.result->closed = false;
}

static void pm_begin(const struct pm_settings *settings, struct pm_result *result)
{
	if (pm.world.node.policy)
		td_node_deinit(&pm.world.node);
	memset(&pm, 0, sizeof(pm));
	memset(&td_gate, 0, sizeof(td_gate));
	memset(&td_meter, 0, sizeof(td_meter));
	memset(&td_pacer, 0, sizeof(td_pacer));
	memset(result, 0, sizeof(*result));
	pm.settings = *settings;
	pm.result = result;
	pm.now_ns = 1000 * TD_NS_PER_MS;
	pm.node_ns = UINT64_MAX;
	pm.jobs[0] = (struct pm_job){.phases = pm.settings.phases,
		.phase_count = settings->phase_count,
		.result = result};
	pm.jobs[1] = (struct pm_job){
		.phases = &pm.settings.second, .phase_count = 1, .result = settings->second_result};
	if (settings->second_result)
		memset(settings->second_result, 0, sizeof(*settings->second_result));
	for (uint32_t i = 0; i < FILLS_MAX; i++)
		pm.fills[i].next_ns = UINT64_MAX;
	if (settings->policy) {
		world_init(&pm.world);
		pm.world.now = pm.now_ns;
		if (td_options_set(&pm.world.node.options, "policy", settings->policy, NULL))
			abort();
		td_node_options_changed(&pm.world.node, pm.now_ns, "policy");
		for (uint32_t i = 0; i < pm_jobs(); i++)
			pm_join_guaranteed(i);
		settle(&pm.world);
		pm_ask_policy();
	}
	for (uint32_t i = 0; i < pm_jobs(); i++) {
		pm.job = &pm.jobs[i];
		pm.job->fake = &pm.world.fakes[i];
		pm.job->seed = settings->seed + 1000 * i;
		pm.job->seen_ns = pm.now_ns;
		pm_begin_step();
	}
}

static void pm_least(uint64_t at_ns, int what, uint64_t *ns, int *which)
{
	if (at_ns >= *ns)
		return;
	*ns = at_ns;
	*which = what;
}

#define JOB  2             /* for each of the guaranteed ones: it goes on, it is idle */
#define FILL (4 + 2 * JOB) /* and the number of the besteffort program */

/* Until the guaranteed program has made so many steps. */
static void pm_run(const struct pm_settings *settings, uint32_t steps, struct pm_result *result)
{
	pm_begin(settings, result);
	while (result->steps < steps) {
		uint64_t at = UINT64_MAX;
		int what = 0;

		if (settings->policy && !pm.joined && result->steps >= settings->join_step)
			pm_join_besteffort();
		if (pm.joined && !pm.filling && result->steps >= settings->fill_step) {
			pm.filling = true;
			for (uint32_t i = 0; i < pm_fills(); i++)
				pm.fills[i].next_ns = pm.now_ns;
		}
		pm_least(pm.jobs[0].next_ns, JOB, &at, &what);
		if (pm_jobs() > 1)
			pm_least(pm.jobs[1].next_ns, JOB + 1, &at, &what);
		pm_least(pm.node_ns, 0, &at, &what);
		pm_least(pm.way_count ? pm.way[pm.way_first].at_ns : UINT64_MAX, 1, &at, &what);
		for (uint32_t i = 0; i < pm_jobs(); i++) {
			pm.job = &pm.jobs[i];
			pm_least(pm_idle_at_ns(), 2 * JOB + (int)i, &at, &what);
		}
		for (uint32_t i = 0; i < pm_fills(); i++)
			pm_least(pm.fills[i].next_ns, FILL + (int)i, &at, &what);
		pm.now_ns = at > pm.now_ns ? at : pm.now_ns;
		pm.job = &pm.jobs[what % JOB];
		switch (what) {
		case 0: pm_ask_policy(); break;
		case 1: pm_arrive(); break;
		case JOB:
		case JOB + 1: pm_guaranteed_goes_on(); break;
		case 2 * JOB:
		case 2 * JOB + 1: pm_say_idle(); break;
		default: pm_fill((uint32_t)(what - FILL)); break;
		}
	}
}
