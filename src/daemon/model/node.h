/*
 * The node: GPUs, processes and their clients as the daemon knows them, and the executor that carries a policy's plan out. No
 * sockets, no clock: peers are reached through td_node_io and the time is a parameter, so tests drive it with fake peers.
 *
 * Who calls. peer.c turns messages into td_node_* calls; after each batch it calls td_node_step, which lets the policy decide
 * and executes. td_node_step is idempotent: calling it once more changes nothing.
 *
 * Ledger invariant. The charges of a GPU's clients never rise above its capacity by an action of ours, nor those of a job's clients
 * above its limit (account.h).
 *
 * Gate invariant. A gate opens only when the plan says so and, for memory that moves, every client of the group is READY.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/model/service.h"
#include "daemon/model/account.h"
#include "daemon/model/activity.h"
#include "daemon/model/hang.h"
#include "daemon/record/events.h"
#include "daemon/model/options.h"
#include "daemon/model/procfs.h"
#include "daemon/model/profiles.h"
#include "daemon/model/supervisors.h"
#include "daemon/model/tenants.h"
#include "gpu/nvml.h"
#include "policy/node/alone.h"
#include "policy/node/profile.h"
#include "policy/policy.h"
#include "proto/gate_page.h"
#include "proto/proto.h"
#include "proto/words.h"

/* Wherever a GPU's index is asked for: the first that the process uses, if any. */
#define TD_GPU_ANY UINT32_MAX

struct td_act;
struct td_err;

/* What a process is told beside its gate word. */
struct td_pacing {
	uint64_t window_ns; /* 0: no bound */
	uint32_t duty_ppm;  /* 0: no bound */
	uint32_t rivals;    /* as in the page */
	uint32_t steps;     /* the end of a step is to be told at once; 0: it need not be */
	uint32_t detect;    /* its steps are to be found in what it launches; 0: they need not be */
	uint32_t hold, alone; /* as in the page */
	/* As in the page; no padding, as they are compared as bytes. */
	uint64_t pause_until_ns, sharers, long_ns, long_every_ns, hold_new, batch;
};

/* A process's own word on its steps, within bounds (preload/measure/steps.h). 0: nothing yet. */
struct td_steps_told {
	uint64_t count, step_ns, began_ns, median_ns;
	uint32_t unit, sure_ppm;
};

/* Of a slot, in bytes, as in gate_page.h: a ceiling, or a claim. */
struct td_ceiling {
	uint64_t device_bytes, all_bytes;
};

/* What is known of MPS on a GPU, by who looks after it. */
struct td_mps_seen {
	enum td_mps state;
	bool can_serve;      /* programs get there by it, or will when a policy asks for it */
	bool hangs;          /* work is in flight, and nothing of it ends */
	uint64_t started_ns; /* the present control daemon or server, whichever is younger */
};

struct td_node_io {
	/* Queues a message to the process's connection. A connection that cannot take it is closed by peer.c later. */
	void (*send)(void *peer, const struct td_msg *msg);
	/* Writes the gate word of the process and what belongs to it, and wakes who waits for it. */
	void (*gate)(void *peer, uint32_t word, const struct td_pacing *pacing);
	/* Shows the process what others of its job have allocated on the slot's GPU. NULL: nobody is interested. */
	void (*others)(void *peer, uint32_t slot, uint64_t bytes);
	/* Somebody may follow the events. */
	void (*event)(void *arg, const struct td_event *event);
	void *arg;
	/* The first client comes to a GPU; the last one has left it. claim: 0, or -EBUSY with a sentence: another daemon has it. NULL: ours. */
	int (*claim)(void *arg, const uint8_t *uuid, struct td_err *err);
	void (*release)(void *arg, const uint8_t *uuid);
	/* Does the process run? With the CPU time that it has had, in clock ticks. NULL: nobody is looked at. stopped.h */
	enum td_stop (*stop)(void *peer, uint64_t *ret_cpu_ticks);
	/*
	 * Sends the process a signal: to the very process that is connected, never to a later one
	 * with its number. 0 or -errno. NULL: cannot.
	 */
	int (*signal)(void *peer, int signal);
	/* An action by hand has begun or changed its state (execute/actions.h). NULL: nobody waits. */
	void (*acted)(void *arg, const struct td_act *act);
	/* Writes the ceilings of a slot (UINT64_MAX: none), and returns what the process has claimed there. NULL: cannot. */
	struct td_ceiling (*ceiling)(void *peer, uint32_t slot, const struct td_ceiling *ceiling);
	/* Looks at MPS on the GPU. False: nobody manages it there. NULL: nobody does anywhere. */
	bool (*mps)(void *arg, const uint8_t *uuid, struct td_mps_seen *ret);
	/* Has the MPS server of the GPU let go of its client. NULL: nobody can. */
	void (*mps_terminate)(void *arg, const uint8_t *uuid, pid_t pid);
};

/* Can a GPU's driver map memory of the host for it? As a program whose memory can move has said. */
enum td_host_memory {
	TD_HOST_MEMORY_UNKNOWN,
	TD_HOST_MEMORY_NO,
	TD_HOST_MEMORY_YES,
};

struct td_gpu {
	bool used;        /* false: a free place in the table */
	uid_t brought_by; /* who attached to it first */
	uint8_t uuid[16];
	char name[64];
	uint64_t total_bytes;    /* gpus.h */
	uint64_t capacity_bytes; /* gpu.capacity, or less where what is not ours takes more */
	struct td_account
		account; /* of that, gathered at each step: what its clients may have on it */
	uint64_t
		reserve_bytes; /* contexts and others: taken on the device, but by no client's allocations */
	uint64_t shortage_bytes, shortage_until_ns, shortage_lasts_ns; /* capacity.c */
	bool shortage_heard;                                           /* since the last step */
	uint64_t
		stays_bytes; /* quota.c: what its clients have that cannot leave it, gathered at each step */
	uint64_t stranded_bytes; /* of that: only for want of a place on the host */
	uint64_t handover_ns;    /* smoothed; 0 unknown */
	uint64_t handovers;
	uint64_t drained_ns;    /* when the last holder was drained; 0: nothing measured since */
	uint64_t drained_moved; /* bytes moved on this GPU until then */
	struct td_alone alone;
	struct td_hang hang; /* of its MPS server */
	enum td_host_memory host_memory;
	uint64_t metered_ppm; /* of its time, what its clients' meters say together; metering.c */
};

struct td_client {
	struct td_list of_node, of_process;
	struct td_process *process;
	uint32_t id, gpu, slot;
	uint32_t sm_share_ppm; /* that it was started with, as it says; 0: none */
	uint64_t total_bytes;  /* the size of its GPU, as it says */
	/*
	 * What its GRANTs let it have unasked, and what it has: on the device, and in all with what lies
	 * on the host or is paged by the driver.
	 */
	struct td_holding device, total;
	uint64_t demanded_bytes; /* all that it has, but for what the driver pages */
	uint64_t host_bytes, peak_bytes, in_bytes, out_bytes, swap_ns;
	uint64_t fixed_bytes;    /* of what is resident: cannot leave the device */
	uint64_t stranded_bytes; /* of what is fixed: only for want of a place on the host */
	uint64_t cached_bytes;   /* of what is demanded: only kept for later, as the program says */
	/* in use within its last step: the most, the least; as its allocator says, else of what is demanded */
	uint64_t step_peak_bytes, step_least_bytes;
	bool by_allocator;
	uint64_t
		shrunk_bytes; /* of out_bytes: told by events; UINT64_MAX: not reported to us yet */
	uint64_t spilled_bytes; /* of what is on the host: within the device's reach */
	uint64_t
		paged_bytes; /* beside what is demanded: the driver's to page, in nobody's way, and in the job's limit */
	uint64_t managed_bytes; /* of what is resident: NVML does not tell of it */
	/* overhead.h: on the device, beside what it allocates; 0: not known, or nothing */
	uint64_t overhead_bytes, attached_ns;
	bool overhead_known;
	/* what it says that it has of others' memory; since when so much; of it, what overhead_bytes may be about */
	uint64_t imported_bytes, imported_ns, overhead_imported_bytes;
	uint64_t given_up_bytes; /* so far, what others may have: as it says */
	bool has_news; /* of what it has imported some may be its own by now, as of the next step */
	uint64_t
		unseen_bytes; /* of it, at this step: counts in its job's hard limit until it is known whose it is */
	struct {
		bool valid;
		uint64_t charged_bytes, overhead_bytes, imported_bytes, next_imported_bytes;
	} seen;                      /* in the last sample */
	struct td_activity activity; /* of the GPU, by its meter */
	bool mps;                    /* it shares the GPU by MPS, as it says */
	struct td_profile profile;   /* shown to policies: show.c */
	bool ready;                  /* everything resident, for this GRANT */
	bool was_there;              /* so it was let in, and nothing has left the device since */
	/* The last GRANT with less than it might have by then. */
	uint32_t lowered_seq;
	uint64_t lowered_bytes;
	uint64_t owes_ns; /* it has not acknowledged its GRANT for so long; 0: it has. stopped.c */
	uint32_t owes_since_seq; /* what it had acknowledged when that began */
	bool has_ceiling; /* its page bounds it, until it has reported for this GRANT: stopped.h */
	uint32_t
		failed; /* CUresult of its context that is beyond help: no plan is about it until it has another. 0: none */
	/*
	 * Its program is coming to this GPU, or has left it (execute/moves.h): no plan is about it.
	 */
	bool aside;
	bool needs; /* an allocation waits */
	enum td_asked asked;
	bool need_refuses; /* it is not to wait for others' memory to find a place on the host */
	uint32_t need_ticket, need_seq; /* need_seq: plans told before it are older */
	uint64_t need_bytes, need_since_ns;
	uint64_t stranded_since_ns; /* need.c; 0: it is not */
	/* what it said itself; and what was granted beyond its limit, to be paged or not, counted until it has reported for the GRANT after that */
	uint64_t reported_bytes, reported_paged_bytes, reported_host_bytes, promised_bytes;
	bool promised_paged;
	uint32_t promised_seq;
	uint64_t others_bytes; /* of its job, as shown to it last */
	/* soft.c: it can keep a part of what it demands on the host; told so in the last GRANT; the most that it is to have on the device; how
	 * things were when it was opened, or an exchange was over */
	bool spills;
	enum td_gate told_gate; /* in the last GRANT */
	uint64_t soft_bytes;
	uint64_t
		asked_ns; /* since when it is to give back by itself what is too much; 0: it is not */
	uint64_t asked_steps; /* what it had told of its steps at that stage */
	enum { TD_ASKED, TD_ASKED_HEARD, TD_ASKED_COUNTED } asked_stage;
	struct {
		uint64_t limit_bytes, resident_bytes, spilled_bytes, too_much_bytes, at_ns;
		uint32_t vain; /* times in a row that it was let in and nothing had changed */
	} settled;             /* when it was let in last */
	/* the last plan */
	struct td_grant grant;
};

/* What the client may still put on the device, by the highest limit that it may believe in. */
static inline uint64_t td_client_charge(const struct td_client *client)
{
	return td_holding_charge(&client->device);
}

/* Memory that other processes may open, and what it could not open of theirs (shares.c). */
struct td_shares {
	uint32_t handles, open;
	uint8_t unreachable; /* enum td_unreachable */
	uint32_t denied[TD_DENIED_N];
	uint8_t last;  /* enum td_denied, if any was */
	bool was_told; /* that it has handles, ever */
	bool was_unreachable;
};

/* host.c: of one process, what it may pin of the host's memory. */
struct td_host_part {
	struct td_holding holding;         /* used: what it says, within what it can have */
	uint64_t wanted_bytes, used_bytes; /* as it says */
	uint64_t asked_ns;                 /* since when its question is open; 0: it is not */
	uint64_t bound_ns; /* when it was told of a bound for the first time since it had none */
	uint32_t ticket, bound_seq;
	uint8_t speaks, lacks; /* it knows of this; the others were told that somebody lacks some */
};

/* stopped.c: of one process. Zeros: it was never looked at. */
struct td_stop_watch {
	enum td_stop is;    /* it is passed by */
	enum td_stop found; /* at the last look */
	bool heard;         /* it has said something since */
	uint64_t looked_ns, since_ns, cpu_ticks;
};

/* Of a process that is to end: execute/endings.c. */
struct td_leave {
	uint64_t asked_ns; /* since when; 0: it is not to end */
	bool answered;
	uint8_t how; /* enum td_leaving, once it has answered */
	bool signalled, killed;
	bool let_go; /* its MPS server was told to let go of it */
};

/* Of a process that moves to another GPU: execute/moves.h. */
struct td_moving {
	uint64_t number; /* of the act; 0: it does not move */
	uint8_t gpu[16];
	bool closes; /* its gate is closed for it */
	bool goes;   /* MOVE GO was sent: its memory is on its way */
	uint64_t reserved_bytes;
};

struct td_process {
	struct td_list of_node, of_job, clients;
	void *peer;
	struct td_job *job;
	uint32_t id;
	pid_t pid;
	uid_t uid;
	char name[64];
	uint8_t backend;    /* enum td_backend_kind */
	uint8_t stays;      /* enum td_backend_reason: why its memory stays where it is */
	char stays_for[64]; /* the library that is the reason, as the program says */
	enum td_phase phase;
	uint64_t phase_since_ns;
	unsigned complaints; /* REJECTED: so many */
	struct td_stop_watch stop;
	bool wants, foreign; /* foreign: let go, see foreign.c */
	bool exchanges;      /* closed for an exchange of memory, not for somebody else */
	uint32_t
		failed; /* CUresult of a context that is beyond help, and so are all of its others: let go until it has another. 0: none */
	uint8_t foreign_gpu[16]; /* the UUID that it was let go for */
	bool stays_foreign;      /* foreign: for good, as no plan can be about it */
	char ungoverned
		[192]; /* why it runs as without tandem, if not for another daemon; empty: it does not */
	uint32_t filling; /* foreign: slots whose memory is to come back first, a bit each */
	uint64_t wants_since_ns, idle_since_ns, closed_ns; /* closed_ns: when it was last drained */
	uint32_t word;                                     /* as written last, with: */
	struct td_pacing pacing;
	bool shares_moments;                  /* alone.c: it may be alone in its turn */
	uint32_t hold, alone;                 /* the same: as in the page */
	uint32_t word_count;                  /* changes so far: the upper bits of the word */
	uint64_t drain_deadline_ns, retry_ns; /* after STUCK: not closed again before */
	uint32_t drain_overruns;
	const struct td_meter_page
		*meter; /* the process's own; NULL: none. What it says is not trusted */
	struct td_steps_told steps;
	/* Likewise. Its layers are there even if the process is no service. */
	const struct td_service_page *service_page;
	struct td_service *service; /* its figures; NULL: it is none, as far as it says */
	struct td_shares shares;
	struct td_host_part host;
	uint32_t can; /* TD_CAN_* */
	struct td_moving moving;
	uint64_t unmovable;       /* TD_UNMOVABLE: why it cannot move, as it says */
	bool told_movable;        /* it has said so */
	uint64_t moves, moved_ns; /* so many; the last one */
	struct td_leave leave;
	bool has_left; /* LEFT has come: its end does no harm to MPS */
	uint64_t started_ns, held_ns, waited_ns, launches, handovers;
	uint8_t candidates[TD_GPU_MAX][16]; /* PLACE: so far */
	uint32_t candidate_count;
};

/* Rows of the node's lists of clients and processes. */
static inline struct td_client *td_client_at(struct td_list *it)
{
	return td_container_of(it, struct td_client, of_node);
}

static inline struct td_process *td_process_at(struct td_list *it)
{
	return td_container_of(it, struct td_process, of_node);
}

struct td_node {
	struct td_options options;
	struct td_node_io io;
	uid_t owner; /* who runs the daemon */
	struct td_events events;
	struct td_gpu gpus[TD_GPU_MAX];
	uint32_t gpu_count, client_count, next_id, next_seq;
	struct td_nvml_gpu listed[TD_NVML_GPU_MAX]; /* gpus.h */
	uint32_t listed_count;
	struct td_list processes, clients, jobs; /* in order of arrival */
	struct td_list supervisors;              /* likewise: supervisors.h */
	uint32_t last_looked;                    /* stopped.h: the id of who was looked at last */
	uint64_t answers_looked_ns;              /* stopped.h: the last step */
	struct td_list tenants;
	uint32_t tenant_count;
	struct td_list acts; /* execute/actions.h: in order of their numbers */
	uint64_t last_act;   /* the highest number so far; not below that of any order */
	const struct td_policy *acts_policy;     /* whose pauses those are */
	struct td_action actions[TD_ACTION_MAX]; /* of the plan that is being carried out */
	uint32_t last_moment;                    /* number of the last moment alone, on any GPU */
	struct td_profiles profiles;
	uint64_t event_ns;  /* of what profiles.c reports */
	uint64_t settle_ns; /* nothing opens before: holders of a lost daemon come back first */
	/* the policy's side */
	void *policy_state;
	const struct td_policy *policy; /* whose state that is */
	struct td_gpu_view gpu_views[TD_GPU_MAX];
	struct td_gpu_verdict verdicts[TD_GPU_MAX]; /* of the last step */
	struct td_client_view views[TD_CLIENT_MAX];
	struct td_grant grants[TD_CLIENT_MAX];
	struct td_client *shown[TD_CLIENT_MAX]; /* whose rows those are */
	uint32_t shown_count;
};

/* 0 or -ENOMEM. io is copied. */
int td_node_init(struct td_node *node, const struct td_node_io *io);
void td_node_deinit(struct td_node *node);

/* Root and who runs the daemon are not bounded by what others may want. owner.c */
bool td_node_is_owner(const struct td_node *node, uid_t uid);
/*
 * The client that plans are about; of a process that moves, the one on its present GPU. NULL: it
 * uses no GPU. moves.c
 */
struct td_client *td_process_client(const struct td_process *process);
/* May the user attach to one more GPU? One user's clients leave room for others' (pool.h). */
bool td_node_may_have_client(const struct td_node *node, uid_t uid);

/* A process says HELLO. NULL if memory is short. pid and uid come from the kernel, not from the message. */
struct td_process *td_node_hello(struct td_node *node, void *peer, pid_t pid, uid_t uid,
	const struct td_msg_hello *hello, uint64_t now_ns);

/* Any later message of a client process. 0, or -EPROTO if it makes no sense: the caller drops the connection. */
int td_node_message(struct td_node *node, struct td_process *process, const struct td_msg *msg,
	uint64_t now_ns);

/* Its connection is closed: everything of it is released. */
void td_node_gone(struct td_node *node, struct td_process *process, uint64_t now_ns);

/* -- node.c, execute.c and foreign.c to each other -- */
/* Sends the client a GRANT. */
void td_node_tell(struct td_node *node, struct td_client *client, uint64_t device_bytes);
/* The same, with the verdict on what it has asked for. */
void td_node_answer(struct td_node *node, struct td_client *client, uint64_t device_bytes,
	enum td_answer verdict);
void td_node_drop_clients(struct td_node *node, struct td_process *process);
/* Why a process is let go (foreign.c): -EBUSY: another daemon has its GPU; -ENOSPC: there is no place for it here. */
void td_node_let_go(struct td_node *node, struct td_process *process, const uint8_t *uuid,
	const struct td_err *why, uint64_t now_ns);
/* UNGOVERNED. 0 or -EPROTO. */
int td_node_ungoverned(struct td_node *node, struct td_process *process,
	const struct td_msg_ungoverned *msg, uint64_t now_ns);
/* Is the GPU ours, or nobody's? Where that cannot be known, it is. */
bool td_node_may_have(struct td_node *node, const uint8_t *uuid);
int td_node_foreign_message(
	struct td_node *node, struct td_process *process, const struct td_msg *msg);

/* What the process is told beside its gate word, by the plan and what its job was given by hand. pacing.c */
struct td_pacing td_node_pacing(
	const struct td_node *node, const struct td_process *process, const struct td_grant *grant);

/* What it says of work that it has never done before: TD_FRESH_*, and how much of it was tried so far. pacing.c */
uint32_t td_process_fresh(const struct td_process *process, uint32_t *ret_tries);

/* Forgets all that is under way (execute/actions.c). */
void td_actions_deinit(struct td_node *node);
/* MOVABLE and MOVED. 0 or -EPROTO. moves.c */
int td_move_message(struct td_node *node, struct td_process *process, const struct td_msg *msg,
	uint64_t now_ns);
/* LEAVING. 0 or -EPROTO. endings.c */
int td_process_leaving(struct td_process *process, const struct td_msg_leaving *msg);

/* Lets the policy decide and carries the plan out. Returns when to step again, or TD_NEVER. */
uint64_t td_node_step(struct td_node *node, uint64_t now_ns);

/* Programs with duties that share a GPU have it for themselves in turn, for moments (policy/node/alone.h). Returns when to step again, or TD_NEVER. alone.c */
uint64_t td_node_step_alone(struct td_node *node, uint64_t now_ns);

/* Would td_node_set_job do it? Changes nothing. */
int td_node_check_job(const struct td_node *node, uid_t uid, const char *job, const char *key,
	const char *value, struct td_err *err);

/*
 * Options of a job (job.h), for all of the user's processes that the name means (root: of everybody's); others of that name are left alone.
 * 0, -ENOENT (no job is named so, or only others' are), -EINVAL, -ERANGE or -EDQUOT with a sentence. job.c
 */
int td_node_set_job(struct td_node *node, uid_t uid, const char *job, const char *key,
	const char *value, uint64_t now_ns, struct td_err *err);

/* An option of the node was changed by hand: capacities and policy follow. */
void td_node_options_changed(struct td_node *node, uint64_t now_ns, const char *what);

/* Does the text name it: by job id, name or pid? */
bool td_process_is_named(const struct td_process *process, const char *job);

/* What it has chosen, or why nothing of it moves any more. 0, or -EPROTO: it is too late, or makes no sense. */
int td_process_backend(struct td_process *process, const struct td_msg_backend *msg);

/* SHARES and DENIED. 0 or -EPROTO. */
int td_shares_message(struct td_node *node, struct td_process *process, const struct td_msg *msg,
	uint64_t now_ns);

/* "running", "waiting", "idle", "leaving", "draining", "filling", "paused", "stopped", "unresponsive", "failed", "foreign" or "ungoverned". */
const char *td_process_state(const struct td_process *process);
/* The same, with a look at whether it is stopped at this moment. */
const char *td_process_state_now(const struct td_node *node, const struct td_process *process);

/* Since when it has been waiting in its present wait, if it is: since it asked or, if it was closed after that, since then. */
uint64_t td_process_waits_since_ns(const struct td_process *process);

/* Time waited up to now. */
uint64_t td_process_waited_ns(const struct td_process *process, uint64_t now_ns);

/* Held time up to now. */
uint64_t td_process_held_ns(const struct td_process *process, uint64_t now_ns);

void td_node_event(struct td_node *node, enum td_event_kind kind, const struct td_process *process,
	uint32_t gpu, uint64_t now_ns, uint64_t value_ns, uint64_t value_bytes, const char *detail);
/* Of a job that may be gone. */
void td_node_job_event(struct td_node *node, enum td_event_kind kind, uid_t uid, const char *job,
	const char *name, uint64_t now_ns, const char *detail);
/* Of a GPU by its number; process may be NULL. */
void td_node_gpu_event(struct td_node *node, enum td_event_kind kind,
	const struct td_process *process, uint32_t number, uint64_t now_ns, const char *detail);
