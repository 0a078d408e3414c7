/*
 * Decides which signals a supervisor passes on to its program, so that the program gets each once.
 * Pure.
 *
 * A signal to the process group (Ctrl-C, `kill %1`) reaches the program by itself; one to the
 * supervisor alone (`kill PID`) does not. The kernel does not tell which it was. So a third process
 * of the group, the witness, blocks all signals: a signal that is also pending there was for the
 * group. systemd and Slurm signal the processes of a job one after the other; that is why a signal
 * waits for TD_RELAY_WAIT_NS before it is passed on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_RELAY_WAIT_NS (10ull * 1000 * 1000)
#define TD_RELAY_MAX     64
#define TD_RELAY_SIGNALS 65 /* signal numbers are from 1 to 64 */

struct td_relay_signal {
	int number;
	bool is_queued; /* the signal was sent by sigqueue(), with `value` */
	uint64_t value;
	uint64_t due_ns;
};

struct td_relay {
	unsigned count;
	struct td_relay_signal waiting[TD_RELAY_MAX]; /* in the order of arrival */
	/*
	 * when the witness received the signal, if this process has not received it yet; 0: not
	 * received
	 */
	uint64_t witnessed_ns[TD_RELAY_SIGNALS];
};

/*
 * Takes a signal that has come here. Returns false if too many wait; then it must be passed on at
 * once. As in the kernel, SIGCONT removes waiting stop signals and the reverse, since the witness
 * has lost them too.
 */
bool td_relay_add(struct td_relay *relay, const struct td_relay_signal *signal, uint64_t now_ns);
/* Takes the signals that the witness had: bit N - 1 of mask for signal N. */
void td_relay_witness(struct td_relay *relay, uint64_t mask, uint64_t now_ns);
/* Returns whether a signal is due. The witness must be asked before it is taken. */
bool td_relay_is_due(const struct td_relay *relay, uint64_t now_ns);
/* Removes stop signals, after the supervisor was stopped and continued. */
void td_relay_continue(struct td_relay *relay);
/* Takes out the next signal that is due. Returns false if there is none. */
bool td_relay_take(struct td_relay *relay, uint64_t now_ns, struct td_relay_signal *ret);
/* Returns when the next signal is due, or UINT64_MAX. */
uint64_t td_relay_wake_ns(const struct td_relay *relay);
