/*
 * Which signals a supervisor passes on to its program, so that the program sees each once. Pure.
 *
 * A signal for the process group (Ctrl-C, `kill %1`) reaches the program without help; one for the
 * supervisor alone (`kill PID`) does not. The kernel does not say which it was. So a third process
 * of the group, the witness, blocks all signals: a signal that it has too was for the group.
 * systemd and Slurm signal each process of a job, one after the other; that is why a signal waits
 * for TD_RELAY_WAIT_NS before it is passed on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_RELAY_WAIT_NS (10ull * 1000 * 1000)
#define TD_RELAY_MAX     64
#define TD_RELAY_SIGNALS 65 /* numbers are from 1 to 64 */

struct td_relay_signal {
	int number;
	bool is_queued; /* by sigqueue(), with `value` */
	uint64_t value;
	uint64_t due_ns;
};

struct td_relay {
	unsigned count;
	struct td_relay_signal waiting[TD_RELAY_MAX]; /* in the order in which they came */
	uint64_t witnessed_ns[TD_RELAY_SIGNALS];      /* when, without having come here; 0: not */
};

/*
 * A signal has come here. False: too many wait, and it is to be passed on at once. As in the
 * kernel, one that continues takes away those that stop, and the reverse: the witness has lost
 * them, too.
 */
bool td_relay_add(struct td_relay *relay, const struct td_relay_signal *signal, uint64_t now_ns);
/* The witness had the signals in `mask`, bit N - 1 for number N. */
void td_relay_witness(struct td_relay *relay, uint64_t mask, uint64_t now_ns);
/* Is a signal due? The witness is to be asked before. */
bool td_relay_is_due(const struct td_relay *relay, uint64_t now_ns);
/* The supervisor was stopped and continued: signals that stop are over. */
void td_relay_continue(struct td_relay *relay);
/* Takes out the next signal that is due: true and *ret, or false. */
bool td_relay_take(struct td_relay *relay, uint64_t now_ns, struct td_relay_signal *ret);
/* When the next is due, or UINT64_MAX. */
uint64_t td_relay_wake_ns(const struct td_relay *relay);
