/* Judges the papers' claims, each one over all of its rows; see experiment.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/experiment.h"

#define ONE      0
#define UNCAPPED (1u << TD_FITTED | 1u << TD_PROPORTIONAL)
#define ALL      ((1u << TD_VARIANT_N) - 1)

const struct td_claim_text td_claims[TD_CLAIM_N] = {
#define TD_CLAIM(id_, experiment_, metric_, paper_, rule_, variants_)                              \
	[TD_CLAIM_##id_] = {experiment_, metric_, paper_, rule_, variants_},
#include "sim/report/claims.def"
#undef TD_CLAIM
};

const char *const td_variant_names[TD_VARIANT_N] = {"fitted", "proportional", "doubled", "halved"};

void td_row_claim(struct td_experiment_run *run, enum td_claim claim, enum td_variant variant,
	const struct td_seeds *seeds)
{
	struct td_row *row = run->last;

	if (!row)
		return;
	row->claim = claim;
	row->variant = variant;
	if (seeds) {
		row->seeds = *seeds;
		row->verdict = td_seeds_verdict(seeds);
	} else if (row->verdict != TD_SHOWN && row->verdict != TD_BY_CONSTRUCTION) {
		td_seed_add(&row->seeds, row->verdict == TD_REPRODUCED, row->verdict == TD_BOUNDED);
	}
}

static void add(struct td_seeds *sum, const struct td_seeds *seeds)
{
	sum->count += seeds->count;
	sum->lost += seeds->lost;
	sum->forbidden += seeds->forbidden;
	sum->unguarded += seeds->unguarded;
}

bool td_claim_fold(
	const struct td_row *rows, uint32_t count, enum td_claim claim, struct td_claim_found *ret)
{
	struct td_claim_found found = {.missing = td_claims[claim].variants};

	for (uint32_t i = 0; i < count; i++) {
		const struct td_row *row = &rows[i];

		if (row->claim != claim)
			continue;
		found.rows++;
		add(&found.seeds, &row->seeds);
		add(&found.in[row->variant], &row->seeds);
		found.constructed += row->verdict == TD_BY_CONSTRUCTION;
		if (row->seeds.count || row->verdict == TD_BY_CONSTRUCTION)
			found.missing &= ~(1u << row->variant);
		if (row->seeds.lost == row->seeds.forbidden)
			continue;
		found.first_open = found.first_open ? found.first_open : row;
		found.open++;
	}
	if (found.missing)
		found.verdict = TD_NOT_REPRODUCED;
	else if (found.seeds.count)
		found.verdict = td_seeds_verdict(&found.seeds);
	else
		found.verdict = found.constructed ? TD_BY_CONSTRUCTION : TD_SHOWN;
	*ret = found;
	return found.rows > 0;
}

/* Opens a stream that writes a text to ret, cut if it does not fit. NULL: out of memory. */
static FILE *open_text(char *ret, size_t size)
{
	memset(ret, 0, size);
	return fmemopen(ret, size - 1, "w");
}

static const char *plural(uint32_t count)
{
	return count == 1 ? "" : "s";
}

/* Prints a text such as "3 of 20 checks fail, 2 by the guard alone, bounds forbid 1". */
static void put_failures(FILE *out, const struct td_seeds *seeds)
{
	fprintf(out, "%u of %u check%s fail%s", seeds->lost, seeds->count, plural(seeds->count),
		seeds->lost == 1 ? "s" : "");
	if (seeds->unguarded)
		fprintf(out, ", %u by the guard alone", seeds->unguarded);
	if (seeds->forbidden == seeds->lost)
		fputs(", forbidden by bounds", out);
	else
		fprintf(out, ", bounds forbid %u", seeds->forbidden);
}

static const char *separator(bool *any)
{
	const char *text = *any ? "; " : "";

	*any = true;
	return text;
}

/* Prints the names of the variants whose bits are set. */
static void put_names(FILE *out, const char *before, uint32_t bits, bool *any)
{
	const char *comma = "";

	if (!bits)
		return;
	fprintf(out, "%s%s ", separator(any), before);
	for (int v = 0; v < TD_VARIANT_N; v++) {
		if (!(bits >> v & 1))
			continue;
		fprintf(out, "%s%s", comma, td_variant_names[v]);
		comma = ", ";
	}
}

/* Returns the bits of the variants in which as many checks fail as in v, for the same reasons. */
static uint32_t same_as(const struct td_claim_found *found, int v)
{
	uint32_t bits = 0;

	for (int other = 0; other < TD_VARIANT_N; other++)
		if (!memcmp(&found->in[other], &found->in[v], sizeof(found->in[v])))
			bits |= 1u << other;
	return bits;
}

void td_claim_why(const struct td_claim_found *found, enum td_claim claim, char *ret, size_t size)
{
	uint32_t variants = td_claims[claim].variants, whole = 0, done = 0;
	FILE *out = open_text(ret, size);
	bool any = false;

	if (!out)
		return;
	for (int v = 0; v < TD_VARIANT_N; v++) {
		const struct td_seeds *in = &found->in[v];

		if (in->lost && !(done >> v & 1)) {
			uint32_t same = same_as(found, v);

			if (variants)
				put_names(out, "in", same, &any);
			fputs(variants ? " " : separator(&any), out);
			put_failures(out, in);
			done |= same;
		} else if (in->count && !in->lost) {
			whole |= 1u << v;
		}
	}
	if (variants) {
		put_names(out, "holds in", whole, &any);
	} else if (whole) {
		fputs(separator(&any), out);
		fprintf(out, found->seeds.count == 1 ? "the one check holds" : "all %u checks hold",
			found->seeds.count);
	}
	put_names(out, "not run in", found->missing, &any);
	if (found->first_open)
		fprintf(out, "%snot forbidden: %u row%s, the first: %s: %s", separator(&any),
			found->open, plural(found->open), found->first_open->metric,
			found->first_open->ours);
	if (found->constructed)
		fprintf(out, "%s%u row%s by construction", separator(&any), found->constructed,
			found->constructed == 1 ? " holds" : "s hold");
	if (!any)
		fprintf(out, "no rule to hold: printed in %u row%s", found->rows,
			plural(found->rows));
	fclose(out);
}

/* --- what came out --- */

#define GROUPS_MAX 4u
#define READABLE   80u /* a longer text is easier to read with a row on each line */

/* Reads the only number of a text. Returns false if it has none or several. */
static bool read_only_number(const char *text, double *ret)
{
	char *end;

	for (; *text && !isdigit((unsigned char)*text); text++)
		if ((*text == '-' || *text == '+') && isdigit((unsigned char)text[1]))
			break;
	*ret = strtod(text, &end);
	if (end == text)
		return false;
	while (*end && !isdigit((unsigned char)*end))
		end++;
	return !*end;
}

static bool is_among(const struct td_row *const *rows, uint32_t count, const char *ours)
{
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(rows[i]->ours, ours))
			return true;
	return false;
}

/*
 * Prints the results for one figure of the paper as a range, from the least to the most. If they do
 * not form a range and are few, prints them one after the other.
 */
static void put_group(FILE *out, const struct td_row *rows, uint32_t count, enum td_claim claim,
	const char *paper)
{
	const struct td_row *of[GROUPS_MAX], *least = NULL, *most = NULL;
	double low = 0, high = 0;
	size_t length = 0;
	uint32_t n = 0;
	bool single = true;

	for (uint32_t i = 0; i < count; i++) {
		double value = 0;

		if (rows[i].claim != claim || strcmp(rows[i].paper, paper) != 0)
			continue;
		single &= read_only_number(rows[i].ours, &value);
		if (!least || value < low) {
			least = &rows[i];
			low = value;
		}
		if (!most || value > high) {
			most = &rows[i];
			high = value;
		}
		if (n < GROUPS_MAX)
			of[n] = &rows[i];
		n++;
	}
	if (single && n > 1 && strcmp(least->ours, most->ours) != 0) {
		fprintf(out, "%s to %s", least->ours, most->ours);
		return;
	}
	if (single || n == 1) {
		fputs(of[0]->ours, out);
		return;
	}
	for (uint32_t k = 0; k < n && k < GROUPS_MAX; k++)
		length += strlen(of[k]->ours);
	if (n > GROUPS_MAX || length > READABLE) {
		fprintf(out, "see the %u rows", n);
		return;
	}
	for (uint32_t k = 0; k < n; k++)
		if (!is_among(of, k, of[k]->ours))
			fprintf(out, "%s%s", k ? " and " : "", of[k]->ours);
}

void td_claim_ours(
	const struct td_row *rows, uint32_t count, enum td_claim claim, char *ret, size_t size)
{
	const char *papers[GROUPS_MAX];
	uint32_t groups = 0, taking_part = 0;
	FILE *out;

	*ret = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t g = 0;

		if (rows[i].claim != claim)
			continue;
		taking_part++;
		while (g < groups && strcmp(papers[g], rows[i].paper) != 0)
			g++;
		if (g < groups)
			continue;
		if (groups == GROUPS_MAX) {
			groups++;
			break;
		}
		papers[groups++] = rows[i].paper;
	}
	if (groups > GROUPS_MAX) {
		snprintf(ret, size, "see the rows");
		return;
	}
	out = taking_part ? open_text(ret, size) : NULL;
	if (!out)
		return;
	for (uint32_t g = 0; g < groups; g++) {
		fputs(g ? "; " : "", out);
		put_group(out, rows, count, claim, papers[g]);
	}
	fclose(out);
}
