/*
 * How the daemon and the supervisor of a job talk to each other. The supervisor is the process
 * `tandem run` where it has stayed as the parent of its command, the child.
 *
 *   supervisor                                   daemon
 *   SUPERVISE (when connected, when anything
 *     in it changes) ------------------------->
 *       <------------------------------------    END, or ERROR with a sentence
 *       <------------------------------------    ORDER
 *   ORDERED (RUNNING) ------------------------>  it has begun
 *   SUPERVISE (the new child) ---------------->  RESTART only
 *   ORDERED (DONE or REFUSED) ---------------->  the order has its end
 *
 * Numbers. An order's number is higher than those of all orders before, also those of an earlier
 * daemon: it is made from CLOCK_MONOTONIC. The supervisor remembers the highest number that it has
 * seen and what it answered. It acts on a higher one only. It answers an equal one once more, and
 * refuses a lower one. An equal one may shorten the times that are left (see below), and nothing
 * else. A higher one takes the place of an order that has not ended, which is answered REFUSED.
 *
 * Epochs. The epoch counts the starts of the child: 1 after the first one. An order names the epoch
 * that it is about. An order about another epoch than the present one is refused: what was to be
 * restarted has been restarted already. So nothing starts twice, whoever asks twice.
 *
 * The end of the child. The daemon sends the ORDER first. It sends LEAVE to those processes of the
 * job that use a GPU, of which the child may be one, when the supervisor has answered RUNNING. So
 * the supervisor knows which end of its child was ordered. One that does not answer within
 * TD_ORDER_ANSWER_NS is not waited for: STOP goes on without it, RESTART and SHADOW are given up.
 *   leave_ns  The processes that use a GPU have so long to leave by themselves. After that the
 *             supervisor sends SIGTERM to the process group of its child.
 *   kill_ns   So long after the SIGTERM it sends SIGKILL to the process group.
 * The daemon repeats the order with leave_ns 0 as soon as none of the processes is left. A child
 * that ends earlier ends the order earlier. DONE is answered when no process of the group is left
 * and, for RESTART, the new child has been started.
 *
 * STOP     The job ends. If `requeue` is set and the supervisor said can_requeue, it queues the job
 *          again; else it exits as its child did.
 * RESTART  The job ends, and the supervisor starts it again at once. It keeps running itself.
 * SHADOW   The supervisor starts a second instance of the job, the shadow, beside the first one.
 *          Its share of the SMs is sm_share_ppm. As soon as it is ready, SUPERVISE names it as the
 *          child, and the first one gets SIGTERM. DONE is answered when that one has ended. If the
 *          shadow ends before, is not ready after leave_ns, or another order comes, then the shadow
 *          is ended, the first one goes on untouched, and REFUSED is answered. kill_ns is the time
 *          between SIGTERM and SIGKILL. The epoch stays.
 *
 * Death, at any point:
 *   The daemon dies. The supervisor carries its order out to the end all the same, and connects
 *     again as libtandem.so does, for as long as it lives. It says SUPERVISE with what is so by
 *     then. It does not start a daemon. The new daemon knows nothing of old orders: it takes an
 *     ORDERED whose number it does not know as news that it does not need, and decides anew.
 *   The supervisor dies. Its children die with it: each was started with PR_SET_PDEATHSIG SIGKILL,
 *     so that a kill of `tandem run` ends the job, as it does where `tandem run` becomes the
 *     command. A client of MPS gets SIGTERM first. The daemon sees the connection end, forgets
 *     the supervisor, and ends its order as refused.
 *   The child dies. The supervisor sees it, and the order has got what it asked for. Without an
 *     order the supervisor does what its own options say.
 *   The connection ends and both live (a daemon that drops a peer): as if the daemon had died. The
 *     daemon gives the order once more to the process that had it, and to no other one: a job of
 *     the same name may have been started since.
 */
#pragma once

#define TD_ORDER_ANSWER_NS 5000000000ull

enum td_order_kind {
	TD_ORDER_STOP,
	TD_ORDER_RESTART,
	TD_ORDER_SHADOW,
	TD_ORDER_N,
};

/* Field of ORDERED: how far an order has come. */
enum td_ordered {
	TD_ORDERED_RUNNING,
	TD_ORDERED_DONE,
	TD_ORDERED_REFUSED, /* nothing was done for it, nor will be; `reason` is a sentence */
	TD_ORDERED_N,
};

/* Bits of SUPERVISE: what the supervisor can do. */
#define TD_SUPERVISOR_RESTARTS 1u
#define TD_SUPERVISOR_REQUEUES 2u
#define TD_SUPERVISOR_SHADOWS  4u
#define TD_SUPERVISOR_ALL      7u
