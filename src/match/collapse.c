/* Finds kinds of rows and columns; see collapse.h. */
#include "match/collapse.h"

#include <string.h>

#include "match/sort.h"

#define SAMPLES 64u

static uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static uint32_t mix(uint32_t hash, uint32_t bits)
{
	hash = (hash ^ bits) * 0x9e3779b1u;
	return hash ^ hash >> 15;
}

static uint32_t sample(uint32_t k, uint32_t n)
{
	return n <= SAMPLES ? k : (uint32_t)((uint64_t)k * n / SAMPLES);
}

size_t td_collapse_room(uint32_t rows, uint32_t columns)
{
	return (size_t)rows * columns / 16;
}

void td_collapse_carve(
	struct td_collapse *c, struct td_carve *carve, uint32_t rows, uint32_t columns)
{
	uint32_t most = rows > columns ? rows : columns;

	c->row_kind = TD_CARVE(carve, uint32_t, rows);
	c->column_kind = TD_CARVE(carve, uint32_t, columns);
	c->row_counts = TD_CARVE(carve, uint32_t, rows);
	c->column_counts = TD_CARVE(carve, uint32_t, columns);
	c->row_order = TD_CARVE(carve, uint32_t, rows);
	c->column_order = TD_CARVE(carve, uint32_t, columns);
	c->weights = TD_CARVE(carve, float, td_collapse_room(rows, columns));
	c->keys = TD_CARVE(carve, uint64_t, most);
	c->first = TD_CARVE(carve, uint32_t, most);
}

/*
 * Numbers the kinds by the keys, sorted by hash and then index, so that equal hashes are
 * neighbours. Returns the number of kinds.
 */
static uint32_t kinds_by_hash(struct td_collapse *c, uint32_t n, uint32_t *kind)
{
	uint32_t kinds = 0;

	td_sort_u64(c->keys, n);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = (uint32_t)c->keys[k];

		if (!k || c->keys[k] >> 32 != c->keys[k - 1] >> 32)
			c->first[kinds++] = i;
		kind[i] = kinds - 1;
	}
	return kinds;
}

static uint32_t find_rows(struct td_collapse *c, const struct td_match_problem *p)
{
	uint32_t kinds, samples = p->columns < SAMPLES ? p->columns : SAMPLES;

	for (uint32_t i = 0; i < p->rows; i++) {
		uint32_t hash = 0;

		for (uint32_t k = 0; k < samples; k++)
			hash = mix(
				hash, bits_of(p->weights[i * p->stride + sample(k, p->columns)]));
		c->keys[i] = (uint64_t)hash << 32 | i;
	}
	kinds = kinds_by_hash(c, p->rows, c->row_kind);
	if (kinds > p->rows / 2)
		/* The hash finds candidates only; td_collapse_find() compares them in full. */
		return kinds;
	for (uint32_t i = 0; i < p->rows; i++) {
		const float *of_first = p->weights + c->first[c->row_kind[i]] * p->stride;

		if (!memcmp(p->weights + i * p->stride, of_first, p->columns * sizeof(float)))
			continue;
		c->first[kinds] = i;
		c->row_kind[i] = kinds++;
	}
	return kinds;
}

/*
 * Finds the kinds of columns by the first row of each row kind; `rows` lists these. Returns their
 * number.
 */
static uint32_t find_columns(
	struct td_collapse *c, const struct td_match_problem *p, const uint32_t *rows, uint32_t n)
{
	uint32_t kinds, samples = n < SAMPLES ? n : SAMPLES;

	for (uint32_t j = 0; j < p->columns; j++)
		c->keys[j] = j;
	for (uint32_t k = 0; k < samples; k++) {
		const float *row = p->weights + rows[sample(k, n)] * p->stride;

		for (uint32_t j = 0; j < p->columns; j++)
			c->keys[j] = (uint64_t)mix((uint32_t)(c->keys[j] >> 32), bits_of(row[j]))
					     << 32 |
				     j;
	}
	kinds = kinds_by_hash(c, p->columns, c->column_kind);
	for (uint32_t k = 0; k < n; k++) {
		const float *row = p->weights + rows[k] * p->stride;

		for (uint32_t j = 0; j < p->columns; j++) {
			if (bits_of(row[j]) == bits_of(row[c->first[c->column_kind[j]]]))
				continue;
			c->first[kinds] = j;
			c->column_kind[j] = kinds++;
		}
	}
	return kinds;
}

/* Counts the members of each kind and sorts them by kind. cursor is scratch of `kinds` entries. */
static void order_by_kind(const uint32_t *kind, uint32_t n, uint32_t kinds, uint32_t *counts,
	uint32_t *order, uint64_t *cursor)
{
	uint32_t at = 0;

	memset(counts, 0, kinds * sizeof(*counts));
	for (uint32_t i = 0; i < n; i++)
		counts[kind[i]]++;
	for (uint32_t k = 0; k < kinds; k++) {
		cursor[k] = at;
		at += counts[k];
	}
	for (uint32_t i = 0; i < n; i++)
		order[cursor[kind[i]]++] = i;
}

bool td_collapse_find(struct td_collapse *c, const struct td_match_problem *p)
{
	c->row_kinds = find_rows(c, p);
	if (c->row_kinds > p->rows / 2) {
		/*
		 * All rows differ. Some columns could still be equal, but comparing all of them
		 * rarely pays.
		 */
		return false;
	}
	memcpy(c->row_order, c->first, c->row_kinds * sizeof(*c->first));
	c->column_kinds = find_columns(c, p, c->row_order, c->row_kinds);
	if ((size_t)c->row_kinds * c->column_kinds > td_collapse_room(p->rows, p->columns))
		return false;
	for (uint32_t i = 0; i < c->row_kinds; i++)
		for (uint32_t j = 0; j < c->column_kinds; j++)
			c->weights[(size_t)i * c->column_kinds + j] =
				p->weights[c->row_order[i] * p->stride + c->first[j]];
	order_by_kind(c->row_kind, p->rows, c->row_kinds, c->row_counts, c->row_order, c->keys);
	order_by_kind(c->column_kind, p->columns, c->column_kinds, c->column_counts,
		c->column_order, c->keys);
	return true;
}
