/* Which GPUs the process's job may see; see place.h. */
#include "preload/agent/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/base/futex.h"
#include "preload/base/lock.h"
#include "preload/base/settings.h"
#include "proto/proto.h"

/*
 * A program waits this long for the daemon to choose its GPUs. If there is no daemon it waits for
 * the grace time, in which a daemon that is being replaced comes back.
 */
#define PATIENCE_NS (10 * TD_NS_PER_S)

enum state {
	UNDECIDED,
	ASKED,
	DECIDED,
};

static struct td_placed
	candidates;     /* from the environment; fixed after load. count 0: the job may see all */
static unsigned wanted; /* the number of candidate GPUs that the job gets */
static bool rest;       /* the program also sees all other GPUs, after those */
static struct td_lock lock = TD_LOCK_INIT(TD_RANK_PLACE);
static struct td_placed chosen; /* guarded by lock until DECIDED, then fixed */
static _Atomic uint32_t state;  /* futex; enum state. It becomes DECIDED under the lock */
static _Atomic bool alone;      /* no daemon answers at present */

/* Owned by the agent. */
static bool told;
static struct td_placed answer; /* the GPUs that PLACED has named so far */

static bool add(struct td_placed *placed, const char *text, size_t len)
{
	char *to = placed->text[placed->count];

	if (placed->count == TD_GPU_MAX || len >= TD_UUID_TEXT)
		return false;
	memcpy(to, text, len);
	to[len] = '\0';
	if (td_uuid_parse(to, placed->uuid[placed->count]))
		return false;
	placed->count++;
	return true;
}

static bool read_list(const char *list)
{
	struct td_placed read = {0};

	while (list) {
		size_t len = strcspn(list, ",");

		if (!add(&read, list, len))
			return false;
		list = list[len] ? list + len + 1 : NULL;
	}
	candidates = read;
	return true;
}

void td_place_read(void)
{
	const char *list = getenv("TANDEM_GPUS"), *count = getenv("TANDEM_GPU_COUNT");
	const char *others = getenv("TANDEM_GPU_REST");
	uint64_t n;

	if (!list || !*list)
		return;
	if (!read_list(list)) {
		td_settings_reject("TANDEM_GPUS");
		return;
	}
	n = candidates.count;
	if (count && *count && td_parse_u64(count, 1, candidates.count, &n, NULL))
		td_settings_reject("TANDEM_GPU_COUNT");
	wanted = (unsigned)n;
	rest = others && *others;
	if (wanted < candidates.count)
		return;
	chosen = candidates;
	atomic_store(&state, DECIDED);
}

bool td_place_is_wanted(void)
{
	return candidates.count != 0;
}

static void decide(const struct td_placed *placed)
{
	td_lock_take(&lock);
	if (atomic_load(&state) != DECIDED) {
		chosen = *placed;
		atomic_store(&state, DECIDED);
	}
	td_lock_drop(&lock);
	td_futex_wake_all(&state, false);
}

static void add_rest(struct td_placed *placed)
{
	uint32_t count = placed->count;

	for (uint32_t i = 0; i < candidates.count && placed->count < TD_GPU_MAX; i++) {
		uint32_t k = 0;

		while (k < count && memcmp(placed->uuid[k], candidates.uuid[i], 16))
			k++;
		if (k < count)
			continue;
		memcpy(placed->uuid[placed->count], candidates.uuid[i], 16);
		memcpy(placed->text[placed->count++], candidates.text[i], TD_UUID_TEXT);
	}
}

void td_place_get(struct td_placed *ret)
{
	uint32_t undecided = UNDECIDED, seen;
	uint64_t start_ns = td_time_now_ns(), now_ns, deadline_ns;
	int saved = errno;

	(void)atomic_compare_exchange_strong(&state, &undecided, ASKED);
	if (atomic_load(&state) != DECIDED && !td_agent_start())
		decide(&candidates);
	while ((seen = atomic_load(&state)) != DECIDED) {
		now_ns = td_time_now_ns();
		deadline_ns = start_ns + (atomic_load(&alone) ? td_settings.grace_ns : PATIENCE_NS);
		if (now_ns >= deadline_ns)
			decide(&candidates);
		else
			td_futex_wait(&state, seen, deadline_ns - now_ns, false);
	}
	*ret = chosen;
	if (rest)
		add_rest(ret);
	errno = saved;
}

/* -- the agent's side -- */

void td_place_step(void (*send)(const struct td_msg *msg))
{
	uint32_t now = atomic_load(&state);
	const struct td_placed *say = now == DECIDED ? &chosen : &candidates;

	atomic_store(&alone, false);
	if (!candidates.count || now == UNDECIDED || told)
		return;
	told = true;
	answer.count = 0;
	for (unsigned i = 0; i < say->count; i++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_place};

		msg.place.count = now == DECIDED ? chosen.count : wanted;
		msg.place.index = i;
		msg.place.candidates = say->count;
		memcpy(msg.place.gpu, say->uuid[i], 16);
		send(&msg);
	}
}

void td_place_message(const struct td_msg_placed *msg)
{
	char text[TD_UUID_TEXT];
	const char *known = td_uuid_format(text, msg->gpu);

	if (atomic_load(&state) != ASKED || msg->index != answer.count)
		return;
	/* MIG instances have UUIDs with another prefix, so the candidate's own text is taken. */
	for (unsigned i = 0; i < candidates.count; i++)
		if (!memcmp(candidates.uuid[i], msg->gpu, 16))
			known = candidates.text[i];
	snprintf(answer.mps, sizeof(answer.mps), "%s", msg->mps);
	answer.sm_share_ppm = msg->sm_share_ppm;
	if (add(&answer, known, strlen(known)) && answer.count == msg->count)
		decide(&answer);
}

void td_place_alone(void)
{
	/* The wake-up is repeated in each step: a thread that is just going to sleep misses it. */
	atomic_store(&alone, true);
	if (atomic_load(&state) == ASKED)
		td_futex_wake_all(&state, false);
}

void td_place_disconnected(void)
{
	told = false;
}

void td_place_forked(void)
{
	uint32_t asked = ASKED;

	td_lock_reset(&lock);
	told = false;
	atomic_store(&alone, false);
	(void)atomic_compare_exchange_strong(&state, &asked, UNDECIDED);
}
