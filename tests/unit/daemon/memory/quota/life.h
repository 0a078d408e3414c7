/* The invariants of the world of world.h, and how its programs come, go and are disturbed. */
#pragma once

#include "tandemd.h"

/* -- what must hold -- */

static void check_charges(const uint64_t charges[JOBS][QUOTA_GPUS],
	const uint64_t has[JOBS][QUOTA_GPUS], const uint64_t limits[JOBS][QUOTA_GPUS])
{
	for (unsigned j = 0; j < JOBS; j++) {
		struct job *job = &w.jobs[j];

		for (unsigned g = 0; g < QUOTA_GPUS; g++) {
			uint64_t bound =
				job->bound[g] < charges[j][g] ? job->bound[g] : charges[j][g];

			job->bound[g] = bound > limits[j][g] ? bound : limits[j][g];
			if (job->loose)
				continue;
			if (w.now_ns > job->doubted_ns + TD_NS_PER_S &&
				charges[j][g] > job->bound[g])
				violated("job %s is charged %llu KiB on GPU %u, bound %llu, limit "
					 "%llu",
					job->name, (unsigned long long)charges[j][g] >> 10, g,
					(unsigned long long)job->bound[g] >> 10,
					(unsigned long long)limits[j][g] >> 10);
			if (has[j][g] > job->bound[g])
				violated("job %s has %llu KiB on GPU %u, bound %llu, limit %llu",
					job->name, (unsigned long long)has[j][g] >> 10, g,
					(unsigned long long)job->bound[g] >> 10,
					(unsigned long long)limits[j][g] >> 10);
		}
	}
}

static void check(void)
{
	uint64_t charges[JOBS][QUOTA_GPUS] = {0}, has[JOBS][QUOTA_GPUS] = {0},
		 limits[JOBS][QUOTA_GPUS], summed[QUOTA_GPUS] = {0};
	bool loose = false, nobody[JOBS];
	struct td_list *it;

	if (!w.up)
		return;
	for (unsigned j = 0; j < JOBS; j++) {
		nobody[j] = true;
		for (unsigned g = 0; g < QUOTA_GPUS; g++)
			limits[j][g] = UINT64_MAX;
	}
	for (unsigned i = 0; i < PROGRAMS; i++)
		for (unsigned g = 0; g < QUOTA_GPUS && w.programs[i].alive; g++) {
			has[w.programs[i].job][g] += w.programs[i].has[g] + w.programs[i].paged[g];
			nobody[w.programs[i].job] = false;
		}
	td_list_for_each (it, &w.node.clients) {
		const struct td_client *c = td_container_of(it, struct td_client, of_node);
		const struct line *line = c->process->peer;
		const struct program *p = &w.programs[line->program];
		unsigned g = w.node.gpus[c->gpu].uuid[0] - 1u;
		unsigned j = (unsigned)c->process->job->name[1] - '0';

		nobody[j] = false;
		limits[j][g] = td_quota_bytes(&w.node, c->process->job, &w.node.gpus[c->gpu]);
		charges[j][g] += td_holding_charge(&c->total);
		/*
		 * A grant that is already in the program's report may be counted twice for a while.
		 */
		if (c->promised_bytes)
			w.jobs[j].doubted_ns = w.now_ns;
		summed[g] += td_client_charge(c);
		if (line->hung_up || !p->alive || p->line != line || w.jobs[j].loose)
			continue;
		if (p->has[g] + p->paged[g] > td_holding_charge(&c->total))
			violated("program %d has %llu KiB on GPU %u and is charged %llu",
				line->program, (unsigned long long)(p->has[g] + p->paged[g]) >> 10,
				g, (unsigned long long)td_holding_charge(&c->total) >> 10);
		if (p->has[g] > td_client_charge(c))
			violated("program %d has %llu KiB on GPU %u and may have %llu",
				line->program, (unsigned long long)p->has[g] >> 10, g,
				(unsigned long long)td_client_charge(c) >> 10);
	}
	check_charges(charges, has, limits);
	for (unsigned j = 0; j < JOBS; j++) {
		w.jobs[j].loose &= !nobody[j];
		loose |= w.jobs[j].loose;
	}
	for (unsigned g = 0; g < w.node.gpu_count; g++) {
		unsigned at = w.node.gpus[g].uuid[0] - 1u;

		/* A GPU that only programs told of is forgotten with the last of them. */
		if (at >= QUOTA_GPUS)
			continue;
		if (!loose && summed[at] > w.node.gpus[g].capacity_bytes &&
			summed[at] > w.summed[at])
			violated("%llu KiB are given away of GPU %u, %llu before",
				(unsigned long long)summed[at] >> 10, at,
				(unsigned long long)w.summed[at] >> 10);
	}
	memcpy(w.summed, summed, sizeof(summed));
}

/* -- programs come and go -- */

static bool is_done(const struct program *p)
{
	for (unsigned t = 1; t <= p->threads; t++)
		if (p->fibers[t].alive)
			return false;
	return true;
}

static void begin_program(unsigned j)
{
	struct job *job = &w.jobs[j];
	struct program *p = &w.programs[w.born];
	const struct quota_settings settings = {.job = job->name,
		.class = job->class,
		.backend = job->backend,
		.mem = job->mem,
		.mem_soft = job->soft,
		.refuses = job->refuses};

	if (w.born == PROGRAMS)
		return;
	trace("program %u begins, of job %s", w.born, job->name);
	p->alive = true;
	p->job = j;
	p->backend = job->backend;
	p->threads = 1 + below(2);
	p->code->begin(&world, (int)w.born, &settings);
	w.born++;
	/* Nobody knows of it yet, and it may have been without a daemon. */
	job->loose |= !w.up;
	for (unsigned t = 1; t <= p->threads; t++)
		start(p, t, NULL);
}

static unsigned members(unsigned j)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w.born; i++)
		n += w.programs[i].alive && w.programs[i].job == j;
	return n;
}

/* Does what the kernel does: ends the connection and frees the GPU's memory, in either order. */
static void end_program(struct program *p)
{
	trace("program %d ends", (int)(p - w.programs));
	p->alive = false;
	for (unsigned t = 0; t < THREADS; t++) {
		if (p->fibers[t].stack)
			munmap(p->fibers[t].stack, STACK_BYTES);
		p->fibers[t] = (struct fiber){0};
	}
	hang_up(p);
}

static void free_memory(struct program *p)
{
	for (unsigned g = 0; g < QUOTA_GPUS; g++) {
		w.used[g] -= p->has[g] + p->contexts[g];
		p->has[g] = p->contexts[g] = p->paged[g] = 0;
	}
}

static struct program *somebody(void)
{
	struct program *p = &w.programs[below(w.born)];

	return p->alive ? p : NULL;
}

static void set_job(const char *key, const char *value)
{
	const struct program *p = somebody();

	if (!p)
		return;
	trace("job %s: %s=%s", w.jobs[p->job].name, key, value);
	(void)td_node_set_job(
		&w.node, td_identity_local(1000), w.jobs[p->job].name, key, value, w.now_ns, NULL);
	w.stepped = false;
}

static void set_option(const char *key, const char *value)
{
	trace("%s=%s", key, value);
	(void)td_options_set(&w.node.options, key, value, NULL);
	td_node_options_changed(&w.node, w.now_ns, key);
	w.stepped = false;
}

/* NVML's figures. */
static void sample(void)
{
	static struct td_nvml_gpu gpus[QUOTA_GPUS];
	struct td_nvml_use uses[PROGRAMS * QUOTA_GPUS];
	uint32_t n = 0;

	for (unsigned g = 0; g < QUOTA_GPUS; g++) {
		memset(gpus[g].uuid, (int)g + 1, 16);
		gpus[g].total_bytes = GPU_BYTES;
		gpus[g].used_bytes = w.used[g];
		for (unsigned i = 0; i < w.born; i++)
			if (w.programs[i].contexts[g])
				uses[n++] = (struct td_nvml_use){g, 1000 + i,
					w.programs[i].has[g] + w.programs[i].contexts[g]};
	}
	td_overhead_seen(&w.node, gpus, uses, n);
	w.stepped = false;
}

static void make_noise(void)
{
	static const char *const limits[] = {"8m", "16m", "30m", "48m", "60m", "60m", "none"},
				 *const softs[] = {"none", "none", "4m", "16m", "40m"},
				 *const classes[] = {"online", "guaranteed", "besteffort",
					 "besteffort"},
				 *const policies[] = {"tandem", "nvshare", "timeshare", "antman",
					 "tandem"},
				 *const hosts[] = {"none", "none", "20m", "100m"},
				 *const contexts[] = {"1", "2", "5"};
	struct program *p;

	if (!w.up) {
		if (below(4) == 0)
			daemon_begin(true);
		return;
	}
	step_again();
	switch (below(24)) {
	case 0:
	case 1:
	case 2: {
		unsigned j = below(JOBS);

		if (members(j) < JOB_MOST)
			begin_program(j);
		break;
	}
	case 3:
		p = somebody();
		if (p && below(3) == 0)
			end_program(p);
		break;
	case 4:
		p = somebody();
		if (p && below(2))
			p->leaving = true;
		break;
	case 5:
	case 6: set_job("mem", limits[below(7)]); break;
	case 7: set_job("mem-soft", softs[below(5)]); break;
	case 8: set_job("class", classes[below(4)]); break;
	case 9: set_job("paused", "on"); break;
	case 10:
	case 11: set_job("paused", "off"); break;
	case 12: set_option("policy", policies[below(5)]); break;
	case 13: set_option("enabled", below(3) ? "on" : "off"); break;
	case 14: set_option("host.limit", hosts[below(4)]); break;
	case 15: set_option("drain.deadline", below(2) ? "20ms" : "15s"); break;
	case 16:
	case 17:
	case 18: sample(); break;
	case 19:
		if (below(12) == 0 && w.delay_ns == DELAY_NS)
			daemon_dies();
		break;
	case 20: set_option("gpu.contexts", contexts[below(3)]); break;
	default: break;
	}
}
