/* Matches the signals of a supervisor with those of its witness; see relay.h. */
#include <signal.h>
#include <string.h>

#include "cli/supervise/relay.h"

static void drop(struct td_relay *relay, unsigned at)
{
	relay->count--;
	memmove(relay->waiting + at, relay->waiting + at + 1,
		(relay->count - at) * sizeof(*relay->waiting));
}

static void forget(struct td_relay *relay, int number)
{
	for (unsigned i = relay->count; i-- > 0;)
		if (relay->waiting[i].number == number)
			drop(relay, i);
	relay->witnessed_ns[number] = 0;
}

void td_relay_continue(struct td_relay *relay)
{
	forget(relay, SIGTSTP);
	forget(relay, SIGTTIN);
	forget(relay, SIGTTOU);
}

static bool does_stop(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

bool td_relay_add(struct td_relay *relay, const struct td_relay_signal *signal, uint64_t now_ns)
{
	uint64_t *witnessed_ns = &relay->witnessed_ns[signal->number];
	bool is_known = *witnessed_ns && now_ns - *witnessed_ns < TD_RELAY_WAIT_NS;

	if (signal->number == SIGCONT)
		td_relay_continue(relay);
	if (does_stop(signal->number))
		forget(relay, SIGCONT);
	*witnessed_ns = 0;
	if (is_known)
		return true;
	if (relay->count == TD_RELAY_MAX)
		return false;
	relay->waiting[relay->count] = *signal;
	relay->waiting[relay->count++].due_ns = now_ns + TD_RELAY_WAIT_NS;
	return true;
}

static void witness(struct td_relay *relay, int number, uint64_t now_ns)
{
	for (unsigned i = 0; i < relay->count; i++) {
		if (relay->waiting[i].number == number) {
			drop(relay, i);
			return;
		}
	}
	relay->witnessed_ns[number] = now_ns;
}

void td_relay_witness(struct td_relay *relay, uint64_t mask, uint64_t now_ns)
{
	for (int number = 1; number < TD_RELAY_SIGNALS; number++)
		if (mask >> (number - 1) & 1)
			witness(relay, number, now_ns);
}

uint64_t td_relay_wake_ns(const struct td_relay *relay)
{
	return relay->count ? relay->waiting[0].due_ns : UINT64_MAX;
}

bool td_relay_is_due(const struct td_relay *relay, uint64_t now_ns)
{
	return td_relay_wake_ns(relay) <= now_ns;
}

bool td_relay_take(struct td_relay *relay, uint64_t now_ns, struct td_relay_signal *ret)
{
	if (!td_relay_is_due(relay, now_ns))
		return false;
	*ret = relay->waiting[0];
	drop(relay, 0);
	return true;
}
