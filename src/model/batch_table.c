/* Tabulates P99 of batch queues; see batch_table.h. */
#include "model/batch_table.h"

#include <math.h>

#define LEAST 0.02
#define STEP  0.04
#define MOST  0.95

static double batch_at(uint32_t b)
{
	return round(exp2(b / 2.));
}

/* Returns P99 in units of the time in which a batch fills. */
static double point(struct td_batch_table *table, uint32_t b, uint32_t l)
{
	double load = LEAST + STEP * l;
	struct td_batch_queue queue = {
		.batch = (uint32_t)batch_at(b), .batch_s = 1, .rate_per_s = load * batch_at(b)};

	if (!(table->fills[b][l] > 0))
		table->fills[b][l] = load * td_batch_queue_latency_s(&queue, 0.99, &table->work);
	return table->fills[b][l];
}

static double along_loads(struct td_batch_table *table, uint32_t b, double load)
{
	double at = fmax(0, (load - LEAST) / STEP);
	uint32_t l = (uint32_t)fmin(at, TD_BATCH_TABLE_LOADS - 2);

	return point(table, b, l) + (at - l) * (point(table, b, l + 1) - point(table, b, l));
}

double td_batch_table_p99_s(struct td_batch_table *table, const struct td_batch_queue *queue)
{
	double load = td_batch_queue_load(queue), low, high, from, to;
	uint32_t b = 0;

	if (load >= MOST || queue->batch > batch_at(TD_BATCH_TABLE_BATCHES - 1))
		return INFINITY;
	if (load < LEAST) /* below the table: sum of filling time and batch time */
		load = LEAST;
	while (b + 2 < TD_BATCH_TABLE_BATCHES && batch_at(b + 1) < queue->batch)
		b++;
	from = log2(batch_at(b));
	to = log2(batch_at(b + 1));
	low = along_loads(table, b, load);
	high = queue->batch > batch_at(b) ? along_loads(table, b + 1, load) : low;
	if (queue->batch > batch_at(b))
		low += (log2(queue->batch) - from) / (to - from) * (high - low);
	return low * queue->batch / queue->rate_per_s;
}
