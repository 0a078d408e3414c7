/* The GPUs that this daemon holds the lock of (gpu/lock.h): those that its clients are on. */
#pragma once

#include <stdint.h>

#include "daemon/model/complaints.h"
#include "proto/words.h"

struct td_err;

struct td_claims {
	char socket[108]; /* ours, as others shall see it */
	int directory;    /* -1: not opened yet, or there is none */
	struct {
		uint8_t uuid[16];
		int fd;
	} held[TD_GPU_MAX];
	uint32_t count;
	struct td_complaints complaints;
};

void td_claims_init(struct td_claims *claims, int listen_fd);
void td_claims_deinit(struct td_claims *claims);

/*
 * 0, or -EBUSY with a sentence that names the owner. Where locks cannot be had at all (no directory that can be written), it is logged
 * and the GPU is shared without one.
 */
int td_claims_take(
	struct td_claims *claims, const char *path, const uint8_t *uuid, struct td_err *err);
void td_claims_release(struct td_claims *claims, const uint8_t *uuid);
