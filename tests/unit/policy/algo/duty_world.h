/*
 * The step-time feedback and a guaranteed job on a simulated clock. Header only: one user per
 * program.
 */
#pragma once

#include <string.h>

#include "policy/algo/control/duty.h"
#include "policy_random.h"

#define MS  1000000ull
#define PPM 1000000u

static struct td_duty duty;
static struct td_duty_input input;
static struct td_duty_output out;
static uint64_t now;

static void start(void)
{
	memset(&duty, 0, sizeof(duty));
	now = 1000 * MS;
	input = (struct td_duty_input){.guaranteed = true, .busy = true, .job = 1, .company = 1};
	out = td_duty_step(&duty, &td_duty_default, &input, now);
}

/* One step of the guaranteed job that takes so long. */
static void finish_step(uint64_t ns)
{
	input.step_began_ns = now;
	now += ns;
	input.steps++;
	input.step_ns = ns;
	input.step_began_ns = now;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
}

__attribute__((unused)) static void finish_steps(int n, uint64_t ns)
{
	while (n--)
		finish_step(ns);
}

/*
 * A job on a fake clock: `bears` of the duty costs it nothing, and the duty beyond that `slows` it
 * in proportion.
 */
struct job {
	double alone_ms, bears, slows, noise;
	uint64_t seed;
};

struct seen {
	double mean_ms, duty,
		/* Over the steps that were judged; the duty is that at their beginnings. */
		worst_ms;
	double given;        /* the duty over the time */
	uint32_t cuts, late; /* late: steps beyond the slack */
};

static struct td_duty_params params;
static double given_ms;

/*
 * Runs one step. Meanwhile the policy is woken when it asks for that, and duty that it takes back
 * speeds up the rest.
 */
static uint64_t live_through(struct job *job)
{
	double left = job->alone_ms * (1 + job->noise * random_normal(&job->seed));
	uint64_t began = now;

	left = left > job->alone_ms / 4 ? left : job->alone_ms / 4;
	while (left > 0) {
		uint64_t wakeup = td_duty_wakeup_ns(&duty, &params, &input, now);
		double excess = out.duty_ppm / 1e6 - job->bears;
		double speed = 1 / (1 + (excess > 0 ? job->slows * excess : 0));
		double until = wakeup == UINT64_MAX ? 1e12 : (double)(wakeup - now) / 1e6;

		if (until * speed >= left) {
			now += (uint64_t)(left / speed * 1e6) + 1;
			given_ms += out.duty_ppm / 1e6 * left / speed;
			break;
		}
		left -= until * speed;
		given_ms += out.duty_ppm / 1e6 * until;
		now = wakeup;
		out = td_duty_step(&duty, &params, &input, now);
	}
	input.steps++;
	input.step_ns = now - began;
	input.step_began_ns = now;
	out = td_duty_step(&duty, &params, &input, now);
	return now - began;
}

static struct seen live(struct job *job, int settle, int steps, uint32_t slack_ppm)
{
	struct seen seen = {0};
	double all = 0;

	params = td_duty_params_of(slack_ppm);
	for (int i = 0; i < settle + steps; i++) {
		uint32_t before = out.duty_ppm;
		double took = (double)live_through(job) / 1e6;

		if (i < settle) {
			given_ms = 0;
			continue;
		}
		seen.mean_ms += took / steps;
		all += took;
		seen.duty += before / 1e6 * took;
		seen.worst_ms = took > seen.worst_ms ? took : seen.worst_ms;
		seen.cuts += out.duty_ppm < before / 2;
		seen.late += took > job->alone_ms * (1 + params.slack_ppm / 1e6);
	}
	seen.duty /= all;
	seen.given = given_ms / all;
	return seen;
}

static void begin(uint32_t slack_ppm)
{
	start();
	params = td_duty_params_of(slack_ppm);
	memset(&duty, 0, sizeof(duty));
	input.step_began_ns = now;
	out = td_duty_step(&duty, &params, &input, now);
}
