/*
 * Levenberg and Marquardt's method on 3 x jobs logarithms; see fit.h. A row of the Jacobian has
 * four entries (g and h of the victim, p and h of the other), so the normal matrix is built in
 * O(observations) and solved by Cholesky's method.
 */
#include "sim/base/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const struct td_fit_options td_fit_default = {.huber = 0.05, .ridge = 0.003, .rounds = 200};

struct fit {
	const struct td_observation *observations;
	uint32_t count, jobs, n; /* n: number of unknowns, 3 for each free job */
	const struct td_fit_options *options;
	int32_t *first;                /* index of a job's first unknown, or -1 */
	double *logs, *priors, *trial; /* 3 for each job */
	double *matrix, *factor, *gradient, *step;
};

double td_pair_speed(const struct td_numbers *v, const struct td_numbers *a)
{
	return 1 / (1 + v->g * a->p + v->h * a->h);
}

static double residual(
	const struct td_observation *o, const double *logs, double *ret_compute, double *ret_host)
{
	const double *v = logs + 3 * (size_t)o->victim, *a = logs + 3 * (size_t)o->other;

	*ret_compute = exp(v[0] + a[1]);
	*ret_host = exp(v[2] + a[2]);
	return log1p(*ret_compute + *ret_host) + log(o->speed);
}

static double cost(const struct fit *fit, const double *logs)
{
	double sum = 0, huber = fit->options->huber, compute, host;

	for (uint32_t i = 0; i < fit->count; i++) {
		double r = fabs(residual(&fit->observations[i], logs, &compute, &host));

		sum += r <= huber ? r * r : huber * (2 * r - huber);
	}
	for (uint32_t j = 0; j < 3 * fit->jobs; j++)
		sum += fit->first[j / 3] < 0
			       ? 0
			       : fit->options->ridge * pow(logs[j] - fit->priors[j], 2);
	return sum;
}

static void add_row(
	struct fit *fit, const int32_t *at, const double *slope, double weight, double r)
{
	for (int i = 0; i < 4; i++) {
		if (at[i] < 0)
			continue;
		fit->gradient[at[i]] += weight * slope[i] * r;
		for (int k = 0; k < 4; k++)
			if (at[k] >= 0)
				fit->matrix[(size_t)at[i] * fit->n + at[k]] +=
					weight * slope[i] * slope[k];
	}
}

static int32_t unknown(const struct fit *fit, uint32_t job, int which)
{
	return fit->first[job] < 0 ? -1 : fit->first[job] + which;
}

static void assemble(struct fit *fit)
{
	memset(fit->matrix, 0, (size_t)fit->n * fit->n * sizeof(double));
	memset(fit->gradient, 0, fit->n * sizeof(double));
	for (uint32_t i = 0; i < fit->count; i++) {
		const struct td_observation *o = &fit->observations[i];
		double compute, host, r = residual(o, fit->logs, &compute, &host);
		double c = compute / (1 + compute + host), h = host / (1 + compute + host);
		int32_t at[4] = {unknown(fit, o->victim, 0), unknown(fit, o->other, 1),
			unknown(fit, o->victim, 2), unknown(fit, o->other, 2)};
		double weight = fabs(r) <= fit->options->huber ? 1 : fit->options->huber / fabs(r);

		add_row(fit, at, (double[]){c, c, h, h}, weight, r);
	}
	for (uint32_t j = 0; j < fit->jobs; j++) {
		for (int k = 0; k < 3 && fit->first[j] >= 0; k++) {
			size_t at = (size_t)fit->first[j] + k;

			fit->matrix[at * fit->n + at] += fit->options->ridge;
			fit->gradient[at] += fit->options->ridge *
					     (fit->logs[3 * j + k] - fit->priors[3 * j + k]);
		}
	}
}

/*
 * Solves step = -(matrix + damping diag)^-1 gradient. Returns false if the matrix is not positive
 * definite.
 */
static bool solve(struct fit *fit, double damping)
{
	uint32_t n = fit->n;
	double *l = fit->factor;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k <= i; k++) {
			double sum = fit->matrix[(size_t)i * n + k];

			if (i == k)
				sum *= 1 + damping;
			for (uint32_t m = 0; m < k; m++)
				sum -= l[(size_t)i * n + m] * l[(size_t)k * n + m];
			if (i == k && !(sum > 0))
				return false;
			l[(size_t)i * n + k] = i == k ? sqrt(sum) : sum / l[(size_t)k * n + k];
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		double sum = -fit->gradient[i];

		for (uint32_t m = 0; m < i; m++)
			sum -= l[(size_t)i * n + m] * fit->step[m];
		fit->step[i] = sum / l[(size_t)i * n + i];
	}
	for (uint32_t i = n; i-- > 0;) {
		for (uint32_t m = i + 1; m < n; m++)
			fit->step[i] -= l[(size_t)m * n + i] * fit->step[m];
		fit->step[i] /= l[(size_t)i * n + i];
	}
	return true;
}

static void take_step(struct fit *fit)
{
	for (uint32_t j = 0; j < 3 * fit->jobs; j++) {
		int32_t first = fit->first[j / 3];
		double step = first < 0 ? 0 : fit->step[first + (int32_t)(j % 3)];

		fit->trial[j] = fmin(8, fmax(-12, fit->logs[j] + fmin(2, fmax(-2, step))));
	}
}

static void search(struct fit *fit)
{
	double damping = 1e-2, now = cost(fit, fit->logs);
	uint32_t settled = 0;

	for (uint32_t round = 0; round < fit->options->rounds && settled < 5; round++) {
		double next = INFINITY;

		assemble(fit);
		if (solve(fit, damping)) {
			take_step(fit);
			next = cost(fit, fit->trial);
		}
		if (next < now) {
			settled = now - next < 1e-7 * now ? settled + 1 : 0;
			memcpy(fit->logs, fit->trial, 3 * fit->jobs * sizeof(double));
			now = next;
			damping = fmax(1e-9, damping / 4);
		} else {
			damping *= 5;
			settled += damping > 1e8 ? 5 : 0;
		}
	}
}

static bool are_valid(const struct td_observation *observations, uint32_t count, uint32_t jobs,
	const struct td_numbers *numbers)
{
	for (uint32_t i = 0; i < count; i++)
		if (observations[i].victim >= jobs || observations[i].other >= jobs ||
			!(observations[i].speed > 0))
			return false;
	for (uint32_t j = 0; j < jobs; j++)
		if (!(numbers[j].g > 0 && numbers[j].p > 0 && numbers[j].h > 0))
			return false;
	return true;
}

static int carve(struct fit *fit, double **ret_memory)
{
	size_t n = fit->n, logs = 3 * (size_t)fit->jobs;
	double *at = calloc(3 * logs + 2 * n * n + 2 * n, sizeof(double));

	*ret_memory = at;
	if (!at)
		return -ENOMEM;
	fit->logs = at;
	fit->priors = fit->logs + logs;
	fit->trial = fit->priors + logs;
	fit->matrix = fit->trial + logs;
	fit->factor = fit->matrix + n * n;
	fit->gradient = fit->factor + n * n;
	fit->step = fit->gradient + n;
	return 0;
}

int td_fit_pairs(const struct td_observation *observations, uint32_t count, uint32_t jobs,
	const bool *free_jobs, const struct td_numbers *priors,
	const struct td_fit_options *options, struct td_numbers *numbers)
{
	td_auto_free int32_t *first = calloc(jobs ? jobs : 1, sizeof(*first));
	td_auto_free double *memory = NULL;
	struct fit fit = {.observations = observations,
		.count = count,
		.jobs = jobs,
		.options = options,
		.first = first};

	if (!are_valid(observations, count, jobs, numbers))
		return -EINVAL;
	if (!first)
		return -ENOMEM;
	for (uint32_t j = 0; j < jobs; j++) {
		first[j] = free_jobs && !free_jobs[j] ? -1 : (int32_t)fit.n;
		fit.n += first[j] < 0 ? 0 : 3;
	}
	if (!fit.n)
		return 0;
	if (carve(&fit, &memory))
		return -ENOMEM;
	for (uint32_t j = 0; j < jobs; j++) {
		const struct td_numbers *prior = priors ? &priors[j] : &numbers[j];

		memcpy(fit.logs + 3 * j,
			(double[]){log(numbers[j].g), log(numbers[j].p), log(numbers[j].h)},
			3 * sizeof(double));
		memcpy(fit.priors + 3 * j, (double[]){log(prior->g), log(prior->p), log(prior->h)},
			3 * sizeof(double));
	}
	search(&fit);
	for (uint32_t j = 0; j < jobs; j++)
		if (first[j] >= 0)
			numbers[j] = (struct td_numbers){exp(fit.logs[3 * j]),
				exp(fit.logs[3 * j + 1]), exp(fit.logs[3 * j + 2])};
	return 0;
}
