/*
 * The parts of GPUs that Kubernetes counts. A GPU is offered as 100 devices, its slices. A
 * container that asks for tandem.dev/gpu: 25 gets 25 of them, a quarter of a GPU.
 *
 *   GPU-8f2f6b1c-....:07     slice 7 of that GPU, as the kubelet names it
 *
 * Pure. The kubelet chooses slices; td_slices_prefer() tells it which ones are best.
 * td_slices_grant() computes what a container with certain slices gets.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

struct td_err;

#define TD_SLICES_PER_GPU 100u
#define TD_SLICE_TEXT     (TD_UUID_TEXT + 3)
#define TD_SLICES_GPUS    64u /* the most GPUs of which one container can have slices */

/* Writes the name of slice `number`, 0 to 99, of a GPU. ret has TD_SLICE_TEXT bytes. */
void td_slice_write(char *ret, const char *uuid, uint32_t number);

/* Returns 0, or -EINVAL with an error that quotes the name. ret_uuid has TD_UUID_TEXT bytes. */
int td_slice_parse(const char *name, char *ret_uuid, uint32_t *ret_number, struct td_err *err);

/* The GPUs that a scheduler has chosen for a container; the UUIDs are those of the caller. */
struct td_slices_wanted {
	const char *uuid[TD_SLICES_GPUS];
	uint32_t count;
};

/*
 * Chooses `size` of `count` free slices, among them all of `must`, which are in `free` too. It
 * first uses up the GPUs of `wanted` (NULL: none), then a GPU of which the container has slices
 * already, and then the GPU with most free slices. So a container has slices of few GPUs, and
 * containers share a GPU only if they have to.
 *
 * Writes `size` pointers into ret, which are pointers of `free` and `must`. Returns 0; -ENOMEM; or
 * -EINVAL with the reason in err: a name that is not a slice, fewer free slices than `size`, or
 * more in `must` than `size`.
 */
int td_slices_prefer(char *const *free, size_t count, char *const *must, size_t must_count,
	size_t size, const struct td_slices_wanted *wanted, const char **ret, struct td_err *err);

/* A container's part of the node. */
struct td_grant {
	uint32_t hundredths; /* the sum of its slices, in hundredths of a GPU */
	uint32_t gpus;       /* how many GPUs it uses; 1 if it asks for a part of one */
	/*
	 * The GPUs of its slices, the one with most slices first. tandemd chooses `gpus` of them.
	 */
	uint32_t candidate_count;
	char candidates[TD_SLICES_GPUS][TD_UUID_TEXT];
	/* The name of its job, k8s.GPU.SLICE.HUNDREDTHS. It is unique on the node at any time. */
	char job[TD_UUID_TEXT + 8];
};

/*
 * Computes the grant for a container's slices. Up to 100 slices are a part of one GPU, whichever
 * GPUs they belong to; more must be a multiple of 100. Returns 0, or -EINVAL with a sentence in
 * err: no slice, a name twice or not a slice, or another number of slices.
 */
int td_slices_grant(char *const *names, size_t count, struct td_grant *ret, struct td_err *err);

#define TD_GRANT_VALUE (TD_SLICES_GPUS * TD_UUID_TEXT) /* the bytes of a variable's value */

/* Writes the candidates to `ret`, separated by commas. `ret` has TD_GRANT_VALUE bytes. */
void td_grant_candidates(const struct td_grant *grant, char *ret);

/*
 * Returns the name of the container's environment variable with the index `at` (0, 1, 2, ...), and
 * writes its value into `ret`, TD_GRANT_VALUE bytes. Returns NULL behind the last one.
 */
const char *td_grant_variable(const struct td_grant *grant, uint32_t at, char *ret);
