/*
 * The network that the example serves: fully connected layers of one width, on the CUDA driver API.
 * One thread uses it. Failures of the driver end the program with a message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NETWORK_WIDTH_MAX 4096
#define NETWORK_BATCH_MAX 1024

struct network {
	uint32_t width, layers, batch_max;
	void *function;      /* CUfunction */
	uint64_t weights;    /* device addresses: the layers' matrices, one after the other */
	uint64_t buffers[2]; /* in and out, exchanged after each layer */
	float *rows;         /* on the host: batch_max rows */
	void *occupy;        /* CUfunction: occupy.h */
	void *stream;        /* CUfunction: stream.h; NULL: not loaded */
	uint64_t streamed;   /* its memory */
	uint64_t activations, activation_bytes; /* address; 0 bytes: none yet */
};

/*
 * Makes a context on device 0 and the weights, which are the same in each run. streams:
 * network_occupy() will be given a bandwidth.
 */
void network_init(
	struct network *network, uint32_t width, uint32_t layers, uint32_t batch_max, bool streams);

/*
 * Keeps that many SMs busy for that long, and so much of the memory bandwidth, as a larger network
 * would. It does not wait.
 */
void network_occupy(const struct network *network, unsigned sms, uint64_t ns, uint64_t bytes_per_s);

/*
 * Holds so much more memory from now on, as a framework's caching allocator does for the largest
 * batch so far. Less than before changes nothing.
 */
void network_hold(struct network *network, uint64_t bytes);

/*
 * Runs `count` rows, at most batch_max. Row i is filled with inputs[i]; outputs[i] is the mean of
 * its last layer. Returns when the GPU is done.
 */
void network_run(struct network *network, const float *inputs, uint32_t count, float *ret_outputs);
