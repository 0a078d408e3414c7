/* See place.h. */
#include "preload/agent/place.h"

#include <errno.h>
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
 * So long a program waits for the daemon's choice. Where there is none it waits for the grace time:
 * one that is being replaced is back by then.
 */
#define PATIENCE_NS (10 * TD_NS_PER_S)

enum state {
	UNDECIDED,
	ASKED,
	DECIDED,
};

static struct td_placed
	candidates;     /* as the environment says; fixed after load. count 0: nothing is wanted */
static unsigned wanted; /* how many of them */
static bool rest;       /* the others are visible, too, behind those */
static struct td_lock lock = TD_LOCK_INIT(TD_RANK_PLACE);
static struct td_placed chosen; /* guarded by lock until DECIDED, then fixed */
static _Atomic uint32_t state;  /* enum state; DECIDED is entered under the lock. Futex */
static _Atomic bool alone;      /* there is no daemon at present */

/* The agent's. */
static bool told;
static struct td_placed answer; /* PLACED so far */

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
	/* It may be a part of a GPU, whose name begins with other letters. */
	for (unsigned i = 0; i < candidates.count; i++)
		if (!memcmp(candidates.uuid[i], msg->gpu, 16))
			known = candidates.text[i];
	if (add(&answer, known, strlen(known)) && answer.count == msg->count)
		decide(&answer);
}

void td_place_alone(void)
{
	/* Each time, as a thread that is just about to sleep does not hear it. */
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
