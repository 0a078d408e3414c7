/*
 * The GPU locks (gpu/lock.h) that this daemon holds. It locks each GPU that one of its clients
 * uses, so that no other daemon shares out the same GPU.
 */
#pragma once

#include <stdint.h>

#include "daemon/record/complaints.h"
#include "proto/words.h"

struct td_err;

struct td_gpu_locks {
	char socket[108]; /* the path of our socket, which is shown to other daemons */
	int directory;    /* -1: not opened yet, or there is none */
	struct {
		uint8_t uuid[16];
		int fd;
	} held[TD_GPU_MAX];
	uint32_t count;
	struct td_complaints complaints;
};

void td_gpu_locks_init(struct td_gpu_locks *locks, int listen_fd);
void td_gpu_locks_deinit(struct td_gpu_locks *locks);

/*
 * Takes the lock of a GPU. Returns 0, or -EBUSY with a sentence in err that names the owner. If
 * locks are impossible (there is no writable directory), this is logged and the GPU is shared
 * without a lock.
 */
int td_gpu_locks_take(
	struct td_gpu_locks *locks, const char *path, const uint8_t *uuid, struct td_err *err);
void td_gpu_locks_release(struct td_gpu_locks *locks, const uint8_t *uuid);
