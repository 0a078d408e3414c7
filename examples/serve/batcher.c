/* See batcher.h. */
#include "batcher.h"

#include <time.h>

#include "base/time.h"
#include "include/tandem/tandem.h"

void batcher_init(struct batcher *batcher, uint64_t linger_ns)
{
	pthread_condattr_t attributes;

	*batcher = (struct batcher){.linger_ns = linger_ns};
	pthread_mutex_init(&batcher->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&batcher->came, &attributes);
	pthread_condattr_destroy(&attributes);
}

bool batcher_add(struct batcher *batcher, struct request *request)
{
	bool has_room;

	pthread_mutex_lock(&batcher->lock);
	has_room = batcher->queued < BATCHER_QUEUE_MAX;
	if (has_room) {
		request->arrived_ns = td_time_now_ns();
		request->token = tandem_arrived(1);
		batcher->queue[(batcher->first + batcher->queued++) % BATCHER_QUEUE_MAX] = request;
		batcher->arrived++;
		pthread_cond_signal(&batcher->came);
	} else {
		batcher->refused++;
	}
	pthread_mutex_unlock(&batcher->lock);
	return has_room;
}

static struct timespec at(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / TD_NS_PER_S), (long)(ns % TD_NS_PER_S)};
}

/* Waits for a batch of `wanted`, or for what there is when its first request has lingered. */
static uint32_t take_batch(struct batcher *batcher, uint32_t wanted, struct request **ret)
{
	uint32_t count;

	pthread_mutex_lock(&batcher->lock);
	while (!batcher->queued)
		pthread_cond_wait(&batcher->came, &batcher->lock);
	while (batcher->queued && batcher->queued < wanted) {
		uint64_t until_ns = batcher->queue[batcher->first]->arrived_ns + batcher->linger_ns;
		struct timespec until = at(until_ns);

		if (td_time_now_ns() >= until_ns)
			break;
		(void)pthread_cond_timedwait(&batcher->came, &batcher->lock, &until);
	}
	count = batcher->queued < wanted ? batcher->queued : wanted;
	for (uint32_t i = 0; i < count; i++) {
		ret[i] = batcher->queue[batcher->first];
		batcher->first = (batcher->first + 1) % BATCHER_QUEUE_MAX;
	}
	batcher->queued -= count;
	pthread_mutex_unlock(&batcher->lock);
	return count;
}

static void note_answers(struct batcher *batcher, struct request **requests, uint32_t count)
{
	uint64_t now_ns = td_time_now_ns();

	pthread_mutex_lock(&batcher->lock);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t ns = now_ns - requests[i]->arrived_ns;

		batcher->latency[td_histogram_bucket(ns)]++;
		batcher->sum_ns += ns;
	}
	batcher->answered += count;
	batcher->batches++;
	batcher->last_batch = count;
	pthread_mutex_unlock(&batcher->lock);
}

static void run_batch(struct batcher *batcher, struct request **requests, uint32_t count)
{
	float inputs[NETWORK_BATCH_MAX], outputs[NETWORK_BATCH_MAX];

	for (uint32_t i = 0; i < count; i++)
		inputs[i] = requests[i]->input;
	network_hold(&batcher->network, count * batcher->activations);
	if (batcher->kernel_ns || batcher->request_ns)
		network_occupy(&batcher->network, batcher->sms,
			batcher->kernel_ns + count * batcher->request_ns, batcher->bandwidth);
	network_run(&batcher->network, inputs, count, outputs);
	note_answers(batcher, requests, count);
	for (uint32_t i = 0; i < count; i++) {
		requests[i]->output = outputs[i];
		requests[i]->batch = count;
		tandem_answered(requests[i]->token, 1);
		requests[i]->done(requests[i]);
	}
}

void batcher_run(struct batcher *batcher, uint32_t width, uint32_t layers, uint32_t batch_max,
	void (*ready)(void))
{
	struct request *requests[NETWORK_BATCH_MAX];
	const float warm = 1;
	float output;
	uint32_t count;

	network_init(&batcher->network, width, layers, batch_max, batcher->bandwidth > 0);
	network_run(&batcher->network, &warm, 1, &output);
	ready();
	for (;;) {
		uint32_t wanted = tandem_batch(batch_max);

		if (!wanted || wanted > batch_max)
			wanted = batch_max;
		count = take_batch(batcher, wanted, requests);
		run_batch(batcher, requests, count);
	}
}
