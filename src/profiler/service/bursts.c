/* See bursts.h. */
#include "profiler/service/bursts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/time.h"

#define UNCOUNTED  2u
#define TIMEOUT_NS (30 * TD_NS_PER_S)
#define LOOK_NS    TD_NS_PER_MS

static void answered(void *arg, uint64_t due_ns, uint64_t now_ns, bool ok)
{
	struct td_bursts *bursts = arg;

	if (!ok)
		bursts->failed++;
	else if (now_ns - due_ns < bursts->least_ns)
		bursts->least_ns = now_ns - due_ns;
}

int td_bursts_init(struct td_bursts *bursts, const char *url, uint32_t batch_max,
	const volatile sig_atomic_t *stop, struct td_err *err)
{
	int r = client_init(&bursts->client, url, NULL, batch_max, TIMEOUT_NS, err);

	bursts->client.answered = answered;
	bursts->client.arg = bursts;
	bursts->stop = stop;
	if (r)
		client_deinit(&bursts->client);
	return r;
}

void td_bursts_deinit(struct td_bursts *bursts)
{
	client_deinit(&bursts->client);
}

/*
 * Returns 0, -EIO: a request failed, -ENOMEM, or -EINTR: *stop. A service that does not answer is
 * not waited for then.
 */
static int send_burst(struct td_bursts *bursts, uint32_t batch)
{
	struct client *client = &bursts->client;

	bursts->failed = 0;
	bursts->least_ns = UINT64_MAX;
	for (uint32_t i = 0; i < batch; i++)
		if (client_ask(client, td_time_now_ns()))
			return -ENOMEM;
	while ((client->in_flight || client->queued) && !*bursts->stop)
		client_wait(client, td_time_now_ns() + LOOK_NS);
	if (*bursts->stop)
		return -EINTR;
	return bursts->failed ? -EIO : 0;
}

bool td_bursts_is_up(struct td_bursts *bursts)
{
	return !send_burst(bursts, 1);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

int td_bursts_measure(struct td_bursts *bursts, uint32_t batch, uint32_t count, double quantile,
	double *ret_latency_s, struct td_err *err)
{
	td_auto_free double *latencies = calloc(count, sizeof(*latencies));
	double rank = ceil(quantile * count);

	if (!latencies)
		return td_err_set(err, -ENOMEM, "no memory for %u latencies", count);
	for (uint32_t i = 0; i < count + UNCOUNTED; i++) {
		int r = send_burst(bursts, batch);

		if (r == -EIO)
			return td_err_set(err, r,
				"%u of %u requests failed: the service did not "
				"answer them with status 200 in %d s",
				bursts->failed, batch, (int)(TIMEOUT_NS / TD_NS_PER_S));
		if (r)
			return td_err_set(err, r, "it was stopped");
		if (i >= UNCOUNTED)
			latencies[i - UNCOUNTED] = (double)bursts->least_ns / 1e9;
	}
	qsort(latencies, count, sizeof(*latencies), compare);
	*ret_latency_s = latencies[rank < 1 ? 0 : (uint32_t)rank - 1];
	return 0;
}
