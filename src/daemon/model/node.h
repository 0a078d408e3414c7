/*
 * The node: GPUs, processes and their clients as the daemon knows them, and the executor that
 * carries a policy's plan out. A client is one process on one GPU.
 *
 * There are no sockets and no clock here: peers are reached through td_node_io, and the time is a
 * parameter. So tests drive the node with fake peers.
 *
 * peer.c turns messages into td_node_* calls. After each batch it calls td_node_step, which lets
 * the policy decide and carries its plan out. A step that sends no GRANT is complete: until an
 * event or the time that it returns, another one sends nothing. The answer to a GRANT causes a
 * step, and the time returned after a GRANT is at most that of a look whether the answer comes.
 *
 * Ledger invariant. No action of the daemon raises the charges of a GPU's clients above its
 * capacity, or those of a job's clients above the job's limit (account.h).
 *
 * Gate invariant. A gate opens only when the plan says so and, for memory that moves, every client
 * of the group is READY.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/model/had.h"
#include "daemon/record/identity.h"
#include "daemon/model/services/service.h"
#include "daemon/model/sharing/account.h"
#include "daemon/model/measure/activity.h"
#include "daemon/model/measure/hang.h"
#include "daemon/record/events.h"
#include "daemon/model/options/options.h"
#include "daemon/model/machine/procfs.h"
#include "daemon/model/services/profiles.h"
#include "daemon/model/supervisors.h"
#include "daemon/model/tenants.h"
#include "gpu/nvml.h"
#include "policy/node/alone.h"
#include "policy/node/profile.h"
#include "policy/policy.h"
#include "proto/gate_page.h"
#include "proto/proto.h"
#include "proto/words.h"

/* Used in place of a GPU's index: the first GPU that the process uses, if any. */
#define TD_GPU_ANY UINT32_MAX

struct td_act;
struct td_checkpoint_order;
struct td_err;

/*
 * The fields of the gate page that pace a process, beside the gate word. proto/gate_page.h explains
 * them.
 */
struct td_pacing {
	uint64_t window_ns;   /* 0: no bound */
	uint32_t duty_ppm;    /* 0: no bound */
	uint32_t rivals;      /* see rivals in gate_page.h */
	uint32_t steps;       /* TD_WANTED_* (proto/gate_page.h) */
	uint32_t detect;      /* not 0: the library looks at the launches for them */
	uint32_t hold, alone; /* see hold and alone in gate_page.h */
	/* See gate_page.h. The struct has no padding, because it is compared as bytes. */
	uint64_t pause_until_ns, sharers, long_ns, long_every_ns, hold_new, batch;
};

/*
 * The steps that a process has reported, cut to possible values (preload/measure/steps.h). Zeros:
 * none were reported.
 */
struct td_steps_told {
	uint64_t count, step_ns, began_ns, median_ns;
	uint32_t unit, sure_ppm;
};

/* A ceiling or a claim of memory in one of a process's slots, as in gate_page.h. */
struct td_ceiling {
	uint64_t device_bytes, all_bytes;
};

/* The state of MPS on a GPU, as server/gpus/mps.c sees it. */
struct td_mps_seen {
	enum td_mps state;
	bool can_serve; /* programs use MPS on this GPU, or will when a policy asks for it */
	bool hangs;     /* work is in flight, and none of it ends */
	/* the start of the control daemon or of the server, whichever is later */
	uint64_t started_ns;
	pid_t server; /* the server's process id; 0: unknown */
	/* the directory that programs use it by, while `state` is ON; valid until the next step */
	const char *directory;
};

struct td_node_io {
	/*
	 * Queues a message to the process's connection. If that is not possible, peer.c closes the
	 * connection later.
	 */
	void (*send)(void *peer, const struct td_msg *msg);
	/*
	 * Writes the gate word of the process and its pacing, and wakes the threads that wait for
	 * it.
	 */
	void (*gate)(void *peer, uint32_t word, const struct td_pacing *pacing);
	/*
	 * Shows the process how many bytes the other processes of its job have allocated on the
	 * slot's GPU. NULL: that is not shown.
	 */
	void (*others)(void *peer, uint32_t slot, uint64_t bytes);
	/* Called when an event was recorded, for tools that follow the events. */
	void (*event)(void *arg, const struct td_event *event);
	void *arg;
	/*
	 * claim is called when the first client comes to a GPU: 0, or -EBUSY with a sentence if
	 * another daemon has the GPU. release is called when the last client has left it. NULL: the
	 * GPU is always ours.
	 */
	int (*claim)(void *arg, const uint8_t *uuid, struct td_err *err);
	void (*release)(void *arg, const uint8_t *uuid);
	/*
	 * Returns whether the process is stopped, and its CPU time so far in clock ticks
	 * (stopped.h). NULL: stopped processes are not looked for.
	 */
	enum td_stop (*stop)(void *peer, uint64_t *ret_cpu_ticks);
	/*
	 * Sends a signal to the process that is connected, and never to a later one with the same
	 * process id. Returns 0 or -errno. NULL: no signals can be sent.
	 */
	int (*signal)(void *peer, int signal);
	/*
	 * Called when an action by hand has begun or changed its state (execute/actions.h). NULL:
	 * no tool waits for that.
	 */
	void (*acted)(void *arg, const struct td_act *act);
	/*
	 * Writes the ceilings of a slot (UINT64_MAX: none; ceiling NULL: they stay as they are),
	 * and returns what the process has claimed there. NULL: ceilings are not supported.
	 */
	struct td_ceiling (*ceiling)(void *peer, uint32_t slot, const struct td_ceiling *ceiling);
	/*
	 * Reads the state of MPS on the GPU. Returns false if MPS is not managed there. NULL: it is
	 * managed on no GPU.
	 */
	bool (*mps)(void *arg, const uint8_t *uuid, struct td_mps_seen *ret);
	/*
	 * Starts a helper for the driver's checkpoint of the process (execute/parking.h); when it
	 * has ended, td_parking_ended() is called. Returns 0 or -errno. NULL: not supported.
	 */
	int (*checkpoint)(void *arg, const struct td_checkpoint_order *order);
	/* Makes the MPS server of the GPU drop its client `pid`. NULL: not supported. */
	void (*mps_terminate)(void *arg, const uint8_t *uuid, pid_t pid);
};

/* Whether a GPU's driver can map host memory, as a program with the swap backend has reported. */
enum td_host_memory {
	TD_HOST_MEMORY_UNKNOWN,
	TD_HOST_MEMORY_NO,
	TD_HOST_MEMORY_YES,
};

struct td_gpu {
	bool used;                     /* false: this entry of the table is free */
	struct td_identity brought_by; /* the user whose program attached to it first */
	uint8_t uuid[16];
	char name[64];
	uint64_t total_bytes; /* the size of the memory of the GPU (gpus.h) */
	/* gpu.capacity, or less if programs without tandem take memory of the GPU. */
	uint64_t capacity_bytes;
	/* The charges of its clients against the capacity; gathered anew in each step. */
	struct td_account account;
	/*
	 * Bytes of the device that are in use but not by a client's allocations: contexts, and
	 * programs without tandem.
	 */
	uint64_t reserve_bytes;
	uint64_t shortage_bytes, shortage_until_ns, shortage_lasts_ns; /* capacity.c */
	bool shortage_heard; /* a shortage was reported since the last step */
	/*
	 * Sums over the clients of this GPU, which quota.c gathers in each step: the number of
	 * clients that wait for a verdict on an allocation, the number that plans leave out because
	 * their program moves, and the memory that cannot leave the device (fixed.h).
	 */
	uint32_t needs, aside;
	uint64_t fixed_bytes;
	/* Memory of this GPU's clients that cannot leave it; quota.c gathers it in each step. */
	uint64_t stays_bytes;
	uint64_t stranded_bytes; /* the part that could leave if the host had more memory */
	uint64_t handover_ns;    /* the smoothed duration of a hand-over; 0: unknown */
	uint64_t handovers;
	/* when the last holder was drained; 0: its hand-over is measured already */
	uint64_t drained_ns;
	uint64_t drained_moved; /* the bytes moved on this GPU until then */
	struct td_alone alone;
	struct td_hang hang; /* watches its MPS server */
	uint64_t xid_ns;     /* the time of the last Xid error that was handled */
	enum td_host_memory host_memory;
	bool shut; /* another daemon has the GPU; checked at shut_ns (0: never) */
	uint64_t shut_ns;
	/* The sum of the shares of this GPU's time that its clients' meters show (metering.c). */
	uint64_t metered_ppm;
};

struct td_client {
	struct td_list of_node, of_process;
	struct td_process *process;
	uint32_t id, gpu, slot;
	/* the share of the SMs that it has, as it reports, and that the plan grants; 0: no share */
	uint32_t sm_share_ppm, sm_share_wanted_ppm;
	uint64_t total_bytes; /* the size of the GPU's memory, as the program reports it */
	/*
	 * How much memory the client may use by its GRANTs, and how much it uses. `device`: on the
	 * device. `total`: on the device and on the host together, with the memory that the driver
	 * pages.
	 */
	struct td_holding device, total;
	uint64_t demanded_bytes; /* all memory of the client, except memory that the driver pages */
	uint64_t host_bytes, peak_bytes, in_bytes, out_bytes, swap_ns;
	uint64_t fixed_bytes;    /* the part of the resident memory that cannot leave the device */
	uint64_t stranded_bytes; /* the part of fixed_bytes that only a lack of host memory keeps */
	uint64_t cached_bytes; /* the part of the memory that its allocator only keeps for reuse */
	/*
	 * The most and the least memory in use within the program's last step. by_allocator: the
	 * program's allocator reported these figures; otherwise they are of demanded_bytes.
	 */
	uint64_t step_peak_bytes, step_least_bytes;
	bool by_allocator;
	/*
	 * The part of out_bytes that events have reported. UINT64_MAX: the client has reported
	 * nothing to this daemon yet.
	 */
	uint64_t shrunk_bytes;
	uint64_t spilled_bytes; /* memory on the host that the device can use there */
	/*
	 * Memory that the driver pages. It is not in demanded_bytes and takes nobody's place on the
	 * device, but counts in the job's limit.
	 */
	uint64_t paged_bytes;
	uint64_t managed_bytes; /* the part of the resident memory that NVML does not count */
	/* overhead.h: memory on the device beside its allocations; 0: none, or not known */
	uint64_t overhead_bytes, attached_ns;
	bool overhead_known;
	/*
	 * imported_bytes: memory of other processes that this client has opened, as it reports.
	 * imported_ns: when that figure rose last. overhead_imported_bytes: how much of it
	 * overhead_bytes may contain.
	 */
	uint64_t imported_bytes, imported_ns, overhead_imported_bytes;
	/* Memory that it has freed and other processes may still have open, as it reports. */
	uint64_t given_up_bytes;
	bool has_news; /* some imported memory may count as this client's own since the last step */
	/*
	 * The part of the imported memory whose owner is not known in this step: it counts in the
	 * job's hard limit until it is.
	 */
	uint64_t unseen_bytes;
	/* The figures of the last sample of NVML. */
	struct {
		bool valid;
		uint64_t charged_bytes, overhead_bytes, imported_bytes, next_imported_bytes;
	} seen;
	struct td_activity activity; /* its use of the GPU, as its meter measures it */
	bool mps;                    /* the client shares the GPU by MPS, as it reports */
	struct td_profile profile; /* what is known of it in advance, shown to policies (show.c) */
	/* its program's dry run on this kind of GPU, as of the file td_profiles.speeds_read */
	const struct td_muxflow_profile *alone;
	uint32_t alone_of;
	bool ready; /* the client has answered this GRANT: all of its memory is on the device */
	/* all of its memory was on the device when its gate opened, and none has left since */
	bool was_there;
	/* The last GRANT that took memory away. */
	uint32_t lowered_seq;
	uint64_t lowered_bytes;
	/* since when the client owes an acknowledgement of a GRANT; 0: it owes none (stopped.c) */
	uint64_t owes_ns;
	uint32_t owes_since_seq; /* the last acknowledged GRANT when that began */
	/* its page has a ceiling until the client has acknowledged this GRANT (stopped.h) */
	bool has_ceiling;
	/* The CUresult of a context that failed for good; 0: none. Plans leave the client out. */
	uint32_t failed;
	/*
	 * Its program is moving to this GPU, or has moved away from it (execute/moves.h). Plans
	 * leave the client out.
	 */
	bool aside;
	bool needs; /* an allocation waits for a verdict */
	enum td_asked asked;
	bool need_refuses; /* an allocation fails where it would wait for others' memory */
	/* need_seq: GRANTs up to this number were sent before the ASK */
	uint32_t need_ticket, need_seq;
	uint64_t need_bytes, need_since_ns;
	/* since when an allocation waits for stranded_bytes to leave; 0: none does (need.c) */
	uint64_t stranded_since_ns;
	/*
	 * reported_*: the client's own figures. promised_bytes: what a verdict granted beyond them,
	 * and promised_paged whether the driver pages that. It counts until the GRANT promised_seq
	 * is acknowledged.
	 */
	uint64_t reported_bytes, reported_paged_bytes, reported_host_bytes, promised_bytes;
	bool promised_paged;
	uint32_t promised_seq;
	uint64_t others_bytes; /* memory of the job's other processes, as told last */
	/* The fields from here to `settled` belong to soft.c. */
	bool spills;            /* the program can run while a part of its memory is on the host */
	enum td_gate told_gate; /* the gate in the last GRANT */
	uint64_t soft_bytes;    /* the most bytes that the client should have on the device */
	/* When the program was asked to free its allocator's cache; 0: it was not asked. */
	uint64_t asked_ns;
	uint64_t asked_steps; /* the program's number of steps when asked_stage changed last */
	enum { TD_ASKED, TD_ASKED_HEARD, TD_ASKED_COUNTED } asked_stage;
	/* The state when its gate opened last, or when an exchange had ended. */
	struct {
		uint64_t limit_bytes, resident_bytes, spilled_bytes, too_much_bytes, at_ns;
		uint32_t vain; /* how many times in a row the gate opened and nothing had changed */
	} settled;
	struct td_grant grant; /* its part of the last plan */
	/* the former `device`, which is empty while a checkpoint has this memory on the host */
	struct td_holding saved;
};

/* Returns the memory of the device that the client uses, or may use by a GRANT still in force. */
static inline uint64_t td_client_charge(const struct td_client *client)
{
	return td_holding_charge(&client->device);
}

/* A process's memory that others may open, and its failed attempts to open others' (shares.c). */
struct td_shares {
	uint32_t handles, open;
	uint8_t unreachable; /* enum td_unreachable */
	uint32_t denied[TD_DENIED_N];
	uint8_t last;  /* the last enum td_denied, if there was one */
	bool was_told; /* an event has already reported that the process has such handles */
	bool was_unreachable;
};

/* The part of the host's memory that one process may pin (host.c). */
struct td_host_part {
	/* holding.used is the figure that the process reports, cut to possible values */
	struct td_holding holding;
	uint64_t wanted_bytes, used_bytes; /* as the process reports */
	uint64_t asked_ns; /* since when its ASK for host memory waits; 0: it waits for none */
	uint64_t bound_ns; /* when the process was given a bound after a time without a bound */
	uint32_t ticket, bound_seq;
	uint8_t speaks; /* the process has sent a message about host memory */
	uint8_t lacks;  /* the other processes were told that this one lacks host memory */
};

/* The observation of one process by stopped.c. All zero: it was never looked at. */
struct td_stop_watch {
	enum td_stop is;    /* treated as stopped: others get its turn */
	enum td_stop found; /* the result of the last look */
	bool heard;         /* the process has sent a message since the last look */
	uint64_t looked_ns, since_ns, cpu_ticks;
	uint64_t counted; /* the counters in its meter page at the last look */
};

/* The end of a process that was told to leave (execute/endings.c). */
struct td_leave {
	uint64_t asked_ns; /* when the process was told to leave; 0: it was not told */
	bool answered;
	uint8_t how; /* enum td_leaving; valid once the process has answered */
	bool signalled, killed;
	bool let_go; /* the MPS server was told to drop this client */
};

/* The move of a process to another GPU (execute/moves.h) or share (execute/reshare.h). */
struct td_moving {
	uint64_t number; /* the number of the act; 0: the process does not move */
	uint8_t gpu[16]; /* all 0: its share changes */
	bool closes;     /* its gate is closed for the move */
	bool goes;       /* MOVE GO was sent, so its memory is being transferred */
	enum td_move_reason why;
	uint64_t reserved_bytes; /* on the new GPU, kept free of others */
};

/* The driver's checkpoint of a process (execute/parking.h). */
struct td_parking {
	uint64_t number;   /* the number of the act; 0: none is under way */
	bool closes;       /* the gate is closed for the checkpoint */
	bool looks;        /* it was asked what prevents a checkpoint, and has not answered yet */
	bool holds;        /* it was told to make no calls of its own (MOVE HOLD) */
	bool goes;         /* a helper is at work: its memory is on the host, or goes there */
	bool is_saved;     /* its memory is on the host, and it occupies none of its GPUs */
	bool may_be_there; /* a helper was ended that may have restored it on `gpu` before */
	uint8_t gpu[16];
};

/* The last finished move of a process to another GPU. */
struct td_moved {
	uint64_t at_ns, pause_ns, bytes;
	uint32_t from; /* the number of the GPU that the process moved away from */
	enum td_move_reason why;
};

/* The CPUs that a process runs on (server/machine/cpus.h). */
enum td_cpus_state {
	TD_CPUS_ANY,
	TD_CPUS_BESTEFFORT, /* the CPUs of besteffort jobs */
	TD_CPUS_KEPT,       /* left as another manager has set them, or they could not be changed */
};

struct td_process {
	struct td_list of_node, of_job, clients;
	void *peer;
	struct td_job *job;
	uint32_t id;
	pid_t pid;
	struct td_identity who;
	char name[64];
	uint8_t backend;    /* enum td_backend_kind */
	uint8_t stays;      /* enum td_backend_reason: why its memory cannot leave the device */
	char stays_for[64]; /* the library that is the reason, as the program reports */
	enum td_phase phase;
	uint64_t phase_since_ns;
	unsigned complaints; /* the number of REJECTED messages that the process has sent */
	struct td_stop_watch stop;
	bool wants, foreign; /* foreign: it runs as without tandem (foreign.c) */
	/* the gate is closed to move this process's memory, not for another one's turn */
	bool exchanges;
	/*
	 * The CUresult of a context that failed for good; 0: none. No context of the process can
	 * work then. It runs as without tandem until it has another context.
	 */
	uint32_t failed;
	uint8_t foreign_gpu[16]; /* the UUID of the GPU that another daemon has */
	bool stays_foreign;      /* foreign until its end, because no plan can apply to it */
	/*
	 * Why it runs as without tandem, if another daemon is not the reason. Empty: it does not.
	 */
	char ungoverned[192];
	/* foreign: one bit for each slot whose memory must first return to the device */
	uint32_t filling;
	uint64_t wants_since_ns, idle_since_ns, closed_ns; /* closed_ns: when it was drained last */
	uint32_t word;                                     /* the gate word as written last */
	struct td_pacing pacing;
	/* alone.c: the process takes part in moments in which one program has the GPU alone */
	bool shares_moments;
	uint32_t hold, alone; /* alone.c: see gate_page.h */
	/* how often the gate word was changed; the word carries this number in its upper bits */
	uint32_t word_count;
	/* retry_ns: the gate is not closed before this time, because its last drain got stuck */
	uint64_t drain_deadline_ns, retry_ns;
	uint32_t drain_overruns;
	/* The process writes this page, so its figures are not trusted. NULL: there is no page. */
	const struct td_meter_page *meter;
	struct td_steps_told steps;
	/*
	 * The process writes this page too. Its part about layers exists even if the process is not
	 * a service.
	 */
	const struct td_service_page *service_page;
	/* its requests and latencies as a service; NULL: it has not declared itself a service */
	struct td_service *service;
	struct td_shares shares;
	struct td_host_part host;
	uint32_t can;      /* TD_CAN_* */
	uint32_t instance; /* TANDEM_INSTANCE of a supervised program; 0: none */
	struct td_moving moving;
	struct td_parking parking;
	/* TD_UNMOVABLE bits: why it cannot move, and why its share of the SMs cannot change */
	uint64_t unmovable, unsharable;
	bool told_movable;                                /* it has sent MOVABLE */
	uint64_t moves;                                   /* the number of finished moves */
	struct td_moved moved;                            /* the last one */
	uint64_t reshares, reshared_ns, reshare_pause_ns; /* changes of its share, and the last */
	struct td_leave leave;
	bool has_left; /* the process has sent LEFT, so its death cannot harm others on MPS */
	enum td_cpus_state cpus;
	char *came_from; /* the control group before TD_CPUS_BESTEFFORT; NULL: unknown */
	uint64_t started_ns, held_ns, waited_ns, launches, handovers;
	uint8_t candidates[TD_GPU_MAX][16]; /* the GPUs that its PLACE messages have named so far */
	uint32_t candidate_count;
};

/* These return the client or process of an element of the node's lists. */
static inline struct td_client *td_client_at(struct td_list *it)
{
	return td_container_of(it, struct td_client, of_node);
}

static inline struct td_process *td_process_at(struct td_list *it)
{
	return td_container_of(it, struct td_process, of_node);
}

/* Can its share of the SMs change while its program runs (execute/reshare.h)? */
static inline bool td_client_reshares(const struct td_client *client)
{
	const struct td_process *p = client->process;
	return client->mps && p->told_movable && p->can & TD_CAN_SHARE && !p->unsharable &&
	       !p->failed;
}

struct td_node {
	struct td_options options;
	struct td_node_io io;
	uid_t owner; /* the user who runs the daemon */
	struct td_events events;
	struct td_gpu gpus[TD_GPU_MAX];
	uint32_t gpu_count, client_count, next_id, next_seq;
	struct td_nvml_gpu listed[TD_NVML_GPU_MAX]; /* gpus.h */
	uint32_t listed_count;
	struct td_list processes, clients, jobs; /* each list is in order of arrival */
	struct td_list supervisors;              /* in order of arrival (supervisors.h) */
	uint32_t last_looked;       /* the id of the process that stopped.c looked at last */
	uint64_t answers_looked_ns; /* when stopped.c looked last for missing acknowledgements */
	struct td_list tenants;
	uint32_t tenant_count;
	struct td_list acts; /* in order of their numbers (execute/actions.h) */
	struct td_had had;
	uint64_t last_act;                   /* the highest number of an action or order so far */
	const struct td_policy *acts_policy; /* the policy that ordered the pauses */
	/* the actions of the plan that is being carried out */
	struct td_action actions[TD_ACTION_MAX];
	uint32_t last_moment; /* the number of the last moment alone, on any GPU */
	struct td_profiles profiles;
	struct td_lessons lessons;
	uint64_t event_ns; /* the time of the events of profiles.c */
	/* No gate opens before: programs that an earlier daemon let in must connect first. */
	uint64_t settle_ns;
	/* The policy, its memory between two steps, and the tables that it reads and writes. */
	void *policy_state;
	const struct td_policy *policy; /* the policy that policy_state belongs to */
	struct td_gpu_view gpu_views[TD_GPU_MAX];
	struct td_gpu_verdict verdicts[TD_GPU_MAX]; /* the results of the last step */
	struct td_client_view views[TD_CLIENT_MAX];
	struct td_grant grants[TD_CLIENT_MAX];
	struct td_client *shown[TD_CLIENT_MAX]; /* the client of each row of views and grants */
	uint32_t shown_count;
	/*
	 * For td_node_step_on(), of the last step: when it was, when parts other than the policy
	 * want the next one (0: at once), the grants as planned, and when each row's meter is to be
	 * read.
	 */
	uint64_t stepped_ns, rests_until_ns;
	struct td_grant planned[TD_CLIENT_MAX];
	uint64_t read_due_ns[TD_CLIENT_MAX];
};

/* Returns 0 or -ENOMEM. Copies io. */
int td_node_init(struct td_node *node, const struct td_node_io *io);
void td_node_deinit(struct td_node *node);

/*
 * Returns whether the user is root or runs the daemon. These two are not bounded by shares that are
 * kept for other users. owner.c
 */
bool td_node_is_owner(const struct td_node *node, struct td_identity who);
/*
 * Returns the client that plans apply to; for a process that moves, the one on its present GPU.
 * Returns NULL if it uses no GPU. moves.c
 */
struct td_client *td_process_client(const struct td_process *process);
/*
 * Returns whether the user may attach to one more GPU. One user's clients leave room for others'
 * (pool.h).
 */
bool td_node_may_have_client(const struct td_node *node, struct td_identity who);

/*
 * Handles HELLO and returns the new process; NULL if memory is short. pid and who come from the
 * kernel, not from the message.
 */
struct td_process *td_node_hello(struct td_node *node, void *peer, pid_t pid,
	struct td_identity who, const struct td_msg_hello *hello, uint64_t now_ns);

/*
 * Handles any later message of a process. Returns 0, or -EPROTO if the message is not valid; then
 * the caller drops the connection.
 */
int td_node_message(struct td_node *node, struct td_process *process, const struct td_msg *msg,
	uint64_t now_ns);

/* Releases everything of a process whose connection has ended. */
void td_node_gone(struct td_node *node, struct td_process *process, uint64_t now_ns);

/* -- functions that node.c, execute.c and foreign.c share -- */
/* Sends the client a GRANT. */
void td_node_tell(struct td_node *node, struct td_client *client, uint64_t device_bytes);
/* Sends the client a GRANT with the verdict on the allocation that it asked for. */
void td_node_answer(struct td_node *node, struct td_client *client, uint64_t device_bytes,
	enum td_answer verdict);
void td_node_drop_clients(struct td_node *node, struct td_process *process);
/*
 * Lets the process run as without tandem (foreign.c). why->code is -EBUSY if another daemon has its
 * GPU, or -ENOSPC if this daemon has no place for it.
 */
void td_node_let_go(struct td_node *node, struct td_process *process, const uint8_t *uuid,
	const struct td_err *why, uint64_t now_ns);
/* The driver has put the client on another GPU, with all that it has. */
void td_node_put(struct td_node *node, struct td_client *client, uint32_t gpu);
/* Handles UNGOVERNED. Returns 0 or -EPROTO. */
int td_node_ungoverned(struct td_node *node, struct td_process *process,
	const struct td_msg_ungoverned *msg, uint64_t now_ns);
/* Returns whether the GPU is ours or free. Returns true if that cannot be known. */
bool td_node_may_have(struct td_node *node, const uint8_t *uuid);
int td_node_foreign_message(
	struct td_node *node, struct td_process *process, const struct td_msg *msg);

/*
 * Returns the pacing of the process, from the plan and from what was set for its job by hand.
 * pacing.c
 */
struct td_pacing td_node_pacing(
	const struct td_node *node, const struct td_process *process, const struct td_grant *grant);

/*
 * Returns TD_FRESH_*: whether the process reports work that it has never done before. *ret_tries is
 * how often that work was tried so far. pacing.c
 */
uint32_t td_process_fresh(const struct td_process *process, uint32_t *ret_tries);
/* Frees all acts, finished or not (execute/actions.c). */
void td_actions_deinit(struct td_node *node);
/* Handles MOVABLE and MOVED. Returns 0 or -EPROTO. moves.c */
int td_move_message(struct td_node *node, struct td_process *process, const struct td_msg *msg,
	uint64_t now_ns);
/*
 * Called when the process cannot attach to a GPU. If it was to move there, the move is given up,
 * the process stays where it is, and the result is true. `why` is a sentence.
 */
bool td_move_has_no_place(struct td_node *node, struct td_process *process,
	const struct td_msg_attach *attach, const char *why, uint64_t now_ns);
/* A client has left. If only those set aside remain and none moves, they are the program's own. */
void td_move_left(struct td_node *node, const struct td_process *process);
/* Handles LEAVING. Returns 0 or -EPROTO. endings.c */
int td_process_leaving(struct td_process *process, const struct td_msg_leaving *msg);

/* Lets the policy decide and carries the plan out. Returns when to step again, or TD_NEVER. */
uint64_t td_node_step(struct td_node *node, uint64_t now_ns);
/*
 * For a caller who knows that since the last step only time has passed: no message and no figure of
 * NVML came, and nobody called another function of the node. Lets only the policy look again, where
 * that is enough (td_policy.by_activity), and leaves out the programs for which nothing changes.
 * Returns false if td_node_step() must be called; otherwise *ret_wakeup is what it would return.
 */
bool td_node_step_on(struct td_node *node, uint64_t now_ns, uint64_t *ret_wakeup);

/*
 * Gives programs with duties that share a GPU the whole GPU in turn, for moments
 * (policy/node/alone.h). Returns when to step again, or TD_NEVER. alone.c
 */
uint64_t td_node_step_alone(struct td_node *node, uint64_t now_ns);

/* Checks whether td_node_set_job() would succeed, and changes nothing. The results are the same. */
int td_node_check_job(const struct td_node *node, struct td_identity who, const char *job,
	const char *key, const char *value, struct td_err *err);

/*
 * Sets an option (job.h) of all jobs of the user that have the name; for root, of all users' jobs.
 * Returns 0, or -ENOENT (no such job), -EINVAL, -ERANGE or -EDQUOT with a sentence in err. job.c
 */
int td_node_set_job(struct td_node *node, struct td_identity who, const char *job, const char *key,
	const char *value, uint64_t now_ns, struct td_err *err);

/* Adapts capacities and the policy after an option of the node was changed by hand. */
void td_node_options_changed(struct td_node *node, uint64_t now_ns, const char *what);

/* Returns whether the text is the process's job id, name or pid. */
bool td_process_is_named(const struct td_process *process, const char *job);

/*
 * Handles BACKEND: the backend that the process has chosen, or why its memory cannot move any more.
 * Returns 0, or -EPROTO if the message comes too late or is not valid.
 */
int td_process_backend(struct td_process *process, const struct td_msg_backend *msg);

/* Handles SHARES and DENIED. Returns 0 or -EPROTO. */
int td_shares_message(struct td_node *node, struct td_process *process, const struct td_msg *msg,
	uint64_t now_ns);

/*
 * Returns the state as a word: "running", "waiting", "idle", "leaving", "draining", "filling",
 * "paused", "stopped", "unresponsive", "locked", "checkpointed", "failed", "foreign" or
 * "ungoverned".
 */
const char *td_process_state(const struct td_process *process);
/* Returns the state as td_process_state() does, but first checks whether the process is stopped. */
const char *td_process_state_now(const struct td_node *node, const struct td_process *process);

/*
 * Returns since when the process waits, if it does: since it asked for the GPU, or since its gate
 * was closed, whichever is later.
 */
uint64_t td_process_waits_since_ns(const struct td_process *process);

/* Returns the total time that the process has waited up to now_ns. */
uint64_t td_process_waited_ns(const struct td_process *process, uint64_t now_ns);

/* Returns the total time that the process has held the GPU up to now_ns. */
uint64_t td_process_held_ns(const struct td_process *process, uint64_t now_ns);

void td_node_event(struct td_node *node, enum td_event_kind kind, const struct td_process *process,
	uint32_t gpu, uint64_t now_ns, uint64_t value_ns, uint64_t value_bytes, const char *detail);
/* Records an event of a job that may be gone. */
void td_node_job_event(struct td_node *node, enum td_event_kind kind, struct td_identity who,
	const char *job, const char *name, uint64_t now_ns, const char *detail);
/* Records an event of the GPU with that number; process may be NULL. */
void td_node_gpu_event(struct td_node *node, enum td_event_kind kind,
	const struct td_process *process, uint32_t number, uint64_t now_ns, const char *detail);
