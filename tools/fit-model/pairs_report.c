/*
 * Errors on pairs that were not fitted: by table, pair, job and family; for jobs and families never
 * seen, with no, one and two probe pairs; the worst pairs; and the limits of the model.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit_model.h"
#include "sim/base/random.h"
#include "sim/data/pairs.h"

#define HALVES 10
#define DRAWS                                                                                      \
	100 /* of probe pairs for each unseen job; with 10 the p90 is 14.3 to 15.4 % by seed */
#define CHOSEN 3u /* among numbers of probes: two that were chosen instead of drawn */
#define WORST  8

struct side {
	uint32_t pair, victim, other;
	double error;
};

struct study {
	const struct td_pairs *pairs;
	struct td_numbers numbers[TD_PAIR_JOBS_MAX];
	struct errors by_job[TD_PAIR_JOBS_MAX];
	double worst[TD_PAIR_JOBS_MAX * (TD_PAIR_JOBS_MAX +
						/*
			      * of a pair's two sides: mean error over the halves in which it was
			      * tested
			      */
						1)];
	uint32_t tested[TD_PAIR_JOBS_MAX * (TD_PAIR_JOBS_MAX + 1)];
};

static double side_speed(const struct td_pair *pair, int side)
{
	return side ? pair->speed_b : pair->speed_a;
}

static double predict_side(const struct td_numbers *numbers, const struct td_pair *pair, int side)
{
	uint32_t v = side ? pair->b : pair->a, o = side ? pair->a : pair->b;

	return td_pair_speed(&numbers[v], &numbers[o]);
}

static void judge_half(struct study *study, const bool *use, struct errors *ret)
{
	for (uint32_t i = 0; i < study->pairs->pair_count; i++) {
		const struct td_pair *pair = &study->pairs->pairs[i];

		if (use[i] || !pair->feasible)
			continue;
		for (int side = 0; side < (pair->a == pair->b ? 1 : 2); side++) {
			double predicted = predict_side(study->numbers, pair, side);
			double measured = side_speed(pair, side);

			errors_add(ret, predicted, measured);
			errors_add(&study->by_job[side ? pair->b : pair->a], predicted, measured);
			study->worst[2 * i + side] += fabs(predicted / measured - 1) * 100;
			study->tested[2 * i + side]++;
		}
	}
}

static void draw_half(const struct td_pairs *pairs, bool *use)
{
	uint32_t order[TD_PAIR_JOBS_MAX * (TD_PAIR_JOBS_MAX + 1) / 2];

	for (uint32_t i = 0; i < pairs->pair_count; i++) {
		order[i] = i;
		use[i] = false;
	}
	td_random_shuffle(&report_seed, order, pairs->pair_count);
	for (uint32_t i = 0; i < pairs->pair_count / 2; i++)
		use[order[i]] = true;
}

static int report_halves(FILE *out, struct study *study)
{
	bool use[TD_PAIR_JOBS_MAX * (TD_PAIR_JOBS_MAX + 1) / 2];
	double median = 0, p90 = 0, mean = 0;

	for (int half = 0; half < HALVES; half++) {
		struct errors errors = {0};

		draw_half(study->pairs, use);
		if (td_pairs_fit(study->pairs, use, study->numbers))
			return -1;
		judge_half(study, use, &errors);
		median += errors_quantile(&errors, 0.5) / HALVES;
		p90 += errors_quantile(&errors, 0.9) / HALVES;
		mean += errors_mean(&errors) / HALVES;
		errors_free(&errors);
	}
	fprintf(out,
		"Mean of the errors %.1f.\n\n| what | median / p90 | goal | |\n|---|---|---|---|\n",
		mean);
	if (strcmp(study->pairs->gpu, "v100"))
		put_goal(out, "pairs not fitted", median, p90, 4, 15);
	else
		fprintf(out,
			"| pairs not fitted | %.1f / %.1f | none: the table is capped and "
			"inconsistent | |\n",
			median, p90);
	return 0;
}

/* The geometric mean of the jobs that `like` is true for. */
static struct td_numbers mean_of(const struct td_numbers *numbers, const bool *like, uint32_t count)
{
	double g = 0, p = 0, h = 0;
	uint32_t n = 0;

	for (uint32_t j = 0; j < count; j++) {
		if (!like[j])
			continue;
		g += log(numbers[j].g);
		p += log(numbers[j].p);
		h += log(numbers[j].h);
		n++;
	}
	return (struct td_numbers){exp(g / n), exp(p / n), exp(h / n)};
}

/* Picks up to `probes` feasible pairs of job j with seen jobs, at random. */
static uint32_t draw_probes(
	const struct td_pairs *pairs, const bool *seen, uint32_t j, uint32_t probes, bool *ret_use)
{
	uint32_t found[2 * TD_PAIR_JOBS_MAX], count = 0;

	memset(ret_use, 0, pairs->pair_count);
	for (uint32_t i = 0; i < pairs->pair_count; i++) {
		const struct td_pair *pair = &pairs->pairs[i];

		if (pair->feasible &&
			((pair->a == j && seen[pair->b]) || (pair->b == j && seen[pair->a])))
			found[count++] = i;
	}
	td_random_shuffle(&report_seed, found, count);
	for (uint32_t k = 0; k < probes && k < count; k++)
		ret_use[found[k]] = true;
	return count;
}

/*
 * Adds the information that a pair of job j with job k would give about the logarithms of j's g, p
 * and h, before it is measured: the outer products of both sides' slopes at the prior.
 */
static void add_information(
	const struct td_numbers *numbers, uint32_t j, uint32_t k, double information[3][3])
{
	const struct td_numbers *own = &numbers[j], *other = &numbers[k];
	double host = own->h * other->h, suffers = own->g * other->p, presses = other->g * own->p;
	const double rows[2][3] = {{suffers / (1 + suffers + host), 0, host / (1 + suffers + host)},
		{0, presses / (1 + presses + host), host / (1 + presses + host)}};

	for (int side = 0; side < 2; side++)
		for (int a = 0; a < 3; a++)
			for (int b = 0; b < 3; b++)
				information[a][b] += rows[side][a] * rows[side][b];
}

static double determinant(double m[3][3])
{
	return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
	       m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
	       m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/*
 * Chooses the two most informative pairs (D-optimal design) before anything of job j is measured,
 * from the fit of the seen jobs and j's prior.
 */
static void choose_probes(const struct td_pairs *pairs, const bool *seen, uint32_t j,
	const struct td_numbers *numbers, bool *ret_use)
{
	uint32_t found[TD_PAIR_JOBS_MAX], partner[TD_PAIR_JOBS_MAX], count = 0, best[2] = {0, 0};
	double most = -1;

	memset(ret_use, 0, pairs->pair_count);
	for (uint32_t i = 0; i < pairs->pair_count; i++) {
		const struct td_pair *pair = &pairs->pairs[i];
		uint32_t other = pair->a == j ? pair->b : pair->a;

		if (!pair->feasible || (pair->a != j && pair->b != j) || !seen[other])
			continue;
		partner[count] = other;
		found[count++] = i;
	}
	for (uint32_t a = 0; a < count; a++) {
		for (uint32_t b = a + 1; b < count; b++) {
			double ridge = td_fit_default.ridge, says;
			double information[3][3] = {{ridge, 0, 0}, {0, ridge, 0}, {0, 0, ridge}};

			add_information(numbers, j, partner[a], information);
			add_information(numbers, j, partner[b], information);
			says = determinant(information);
			if (!(says > most))
				continue;
			most = says;
			best[0] = a;
			best[1] = b;
		}
	}
	for (int n = 0; n < 2 && count > 1; n++)
		ret_use[found[best[n]]] = true;
}

/* The job's three numbers from its probes; the others stay. */
static int probe(
	const struct td_pairs *pairs, const bool *use, uint32_t j, struct td_numbers *numbers)
{
	struct td_observation observations[8];
	bool free_jobs[TD_PAIR_JOBS_MAX] = {false};
	struct td_fit_options options = td_fit_default;
	uint32_t count = td_pairs_observe(pairs, use, observations);

	free_jobs[j] = true;
	return td_fit_pairs(
		observations, count, pairs->job_count, free_jobs, NULL, &options, numbers);
}

static void judge_job(const struct td_pairs *pairs, const bool *seen, const bool *use, uint32_t j,
	const struct td_numbers *numbers, struct errors *ret)
{
	for (uint32_t i = 0; i < pairs->pair_count; i++) {
		const struct td_pair *pair = &pairs->pairs[i];
		bool ours = (pair->a == j && seen[pair->b]) || (pair->b == j && seen[pair->a]);

		if (!ours || !pair->feasible || use[i])
			continue;
		for (int side = 0; side < 2; side++)
			errors_add(ret, predict_side(numbers, pair, side), side_speed(pair, side));
	}
}

/* Hides a family, or one job of it, fits the rest, then places the hidden jobs one by one. */
static int judge_hidden(const struct td_pairs *pairs, const bool *seen, struct errors *by_probes)
{
	bool use[TD_PAIR_JOBS_MAX * (TD_PAIR_JOBS_MAX + 1) / 2];
	struct td_numbers fitted[TD_PAIR_JOBS_MAX], numbers[TD_PAIR_JOBS_MAX];

	for (uint32_t i = 0; i < pairs->pair_count; i++)
		use[i] = seen[pairs->pairs[i].a] && seen[pairs->pairs[i].b];
	if (td_pairs_fit(pairs, use, fitted))
		return -1;
	for (uint32_t j = 0; j < pairs->job_count; j++) {
		bool like[TD_PAIR_JOBS_MAX], any = false;

		if (seen[j])
			continue;
		for (uint32_t k = 0; k < pairs->job_count; k++) {
			like[k] = seen[k] && pairs->family[k] == pairs->family[j];
			any |= like[k];
		}
		for (uint32_t probes = 0; probes <= CHOSEN; probes++) {
			bool random = probes && probes < CHOSEN;

			for (int draw = 0; draw < (random ? DRAWS : 1); draw++) {
				memcpy(numbers, fitted, sizeof(numbers));
				numbers[j] = mean_of(fitted, any ? like : seen, pairs->job_count);
				if (probes == CHOSEN)
					choose_probes(pairs, seen, j, numbers, use);
				else
					(void)draw_probes(pairs, seen, j, probes, use);
				if (probes && probe(pairs, use, j, numbers))
					return -1;
				judge_job(pairs, seen, use, j, numbers, &by_probes[probes]);
			}
		}
	}
	return 0;
}

static int report_unseen(FILE *out, const struct td_pairs *pairs)
{
	struct errors job[CHOSEN + 1] = {0}, family[CHOSEN + 1] = {0};
	bool seen[TD_PAIR_JOBS_MAX];
	static const char *const names[] = {"no probe pair", "1 probe pair drawn at random",
		"2 probe pairs drawn at random", "2 probe pairs chosen by design"};
	char what[64];

	for (uint32_t j = 0; j < pairs->job_count; j++) {
		bool alone = true;

		memset(seen, true, sizeof(seen));
		seen[j] = false;
		for (uint32_t k = 0; k < pairs->job_count; k++)
			alone &= k == j || pairs->family[k] != pairs->family[j];
		if (!alone && judge_hidden(pairs, seen, job))
			return -1;
		if (pairs->family[j] != j)
			continue;
		for (uint32_t k = 0; k < pairs->job_count; k++)
			seen[k] = pairs->family[k] != j;
		if (judge_hidden(pairs, seen, family))
			return -1;
	}
	for (uint32_t probes = 0; probes <= CHOSEN; probes++)
		fprintf(out, "| unseen job of a seen family, %s | %.1f / %.1f | none | |\n",
			names[probes], errors_quantile(&job[probes], 0.5),
			errors_quantile(&job[probes], 0.9));
	for (uint32_t probes = 0; probes <= CHOSEN; probes++) {
		double median = errors_quantile(&family[probes], 0.5);
		double p90 = errors_quantile(&family[probes], 0.9);

		snprintf(what, sizeof(what), "unseen family, %s", names[probes]);
		if (probes >= 2 && strcmp(pairs->gpu, "v100"))
			put_goal(out, what, median, p90, 5, 15);
		else
			fprintf(out, "| %s | %.1f / %.1f | none | |\n", what, median, p90);
		errors_free(&job[probes]);
		errors_free(&family[probes]);
	}
	return 0;
}

static void put_families(FILE *out, struct study *study)
{
	fputs("\n| job | median | p90 | |\n|---|---|---|---|\n", out);
	for (uint32_t f = 0; f < study->pairs->job_count; f++) {
		struct errors family = {0};

		if (study->pairs->family[f] != f)
			continue;
		for (uint32_t j = f; j < study->pairs->job_count; j++) {
			if (study->pairs->family[j] != f || !study->by_job[j].count)
				continue;
			fprintf(out, "| %s | %.1f | %.1f | |\n", study->pairs->jobs[j],
				errors_quantile(&study->by_job[j], 0.5),
				errors_quantile(&study->by_job[j], 0.9));
			for (uint32_t i = 0; i < study->by_job[j].count; i++)
				errors_add(&family, study->by_job[j].values[i] / 100 + 1, 1);
		}
		fprintf(out, "| **all %.*s** | **%.1f** | **%.1f** | family |\n",
			(int)strcspn(study->pairs->jobs[f], "("), study->pairs->jobs[f],
			errors_quantile(&family, 0.5), errors_quantile(&family, 0.9));
		errors_free(&family);
	}
}

static void put_worst(FILE *out, struct study *study)
{
	fputs("\nWorst, mean over the halves in which the pair was not fitted:\n\n| job | beside | "
	      "error % |\n|---|---|---|\n",
		out);
	for (uint32_t i = 0; i < 2 * study->pairs->pair_count; i++)
		study->worst[i] = study->tested[i] ? study->worst[i] / study->tested[i] : 0;
	for (int n = 0; n < WORST; n++) {
		uint32_t most = 0;
		const struct td_pair *pair;

		for (uint32_t i = 0; i < 2 * study->pairs->pair_count; i++)
			if (study->worst[i] > study->worst[most])
				most = i;
		pair = &study->pairs->pairs[most / 2];
		fprintf(out, "| %s | %s | %.0f |\n",
			study->pairs->jobs[most % 2 ? pair->b : pair->a],
			study->pairs->jobs[most % 2 ? pair->a : pair->b], study->worst[most]);
		study->worst[most] = 0;
	}
}

int report_pairs(FILE *out, const struct td_pairs *pairs)
{
	struct study *study = calloc(1, sizeof(*study));
	uint32_t feasible = 0;
	int r;

	if (!study)
		return -1;
	study->pairs = pairs;
	for (uint32_t i = 0; i < pairs->pair_count; i++)
		feasible += pairs->pairs[i].feasible;
	fprintf(out, "\n## %s: %u jobs of %u families, %u feasible pairs of %u\n\n", pairs->gpu,
		pairs->job_count, pairs->family_count, feasible, pairs->pair_count);
	r = report_halves(out, study) || report_unseen(out, pairs) ? -1 : 0;
	if (!r) {
		put_families(out, study);
		put_worst(out, study);
	}
	for (uint32_t j = 0; j < pairs->job_count; j++)
		errors_free(&study->by_job[j]);
	free(study);
	return r;
}
