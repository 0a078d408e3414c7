/*
 * The node: GPUs, processes and their clients as the daemon knows them, and the executor that
 * carries a policy's plan out. A client is one process on one GPU.
 *
 * There are no sockets and no clock here: peers are reached through td_node_io, and the time is a
 * parameter. So tests drive the node with fake peers.
 *
 * Who calls. peer.c turns messages into td_node_* calls. After each batch it calls td_node_step,
 * which lets the policy decide and carries out what it decided. td_node_step is idempotent: calling
 * it once more changes nothing.
 *
 * Ledger invariant. No action of ours raises the charges of a GPU's clients above its capacity, or
 * those of a job's clients above the job's limit (account.h).
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

/* In place of a GPU's index: the first GPU that the process uses, if any. */
#define TD_GPU_ANY UINT32_MAX

struct td_act;
struct td_err;

/* The fields of the gate page that a process is told beside its gate word. */
struct td_pacing {
	uint64_t window_ns;   /* 0: no bound */
	uint32_t duty_ppm;    /* 0: no bound */
	uint32_t rivals;      /* as in the page */
	uint32_t steps;       /* not 0: the process reports the end of each step at once */
	uint32_t detect;      /* not 0: the library looks for steps in the launches */
	uint32_t hold, alone; /* as in the page */
	/* As in the page. The struct has no padding, because it is compared as bytes. */
	uint64_t pause_until_ns, sharers, long_ns, long_every_ns, hold_new, batch;
};

/*
 * The steps that a process has reported, cut to what is possible (preload/measure/steps.h). 0:
 * nothing yet.
 */
struct td_steps_told {
	uint64_t count, step_ns, began_ns, median_ns;
	uint32_t unit, sure_ppm;
};

/* A ceiling or a claim of memory in one of a process's slots, as in gate_page.h. */
struct td_ceiling {
	uint64_t device_bytes, all_bytes;
};

/* The state of MPS on a GPU, as server/mps.c sees it. */
struct td_mps_seen {
	enum td_mps state;
	bool can_serve;      /* programs use MPS there, or will when a policy asks for it */
	bool hangs;          /* work is in flight, and none of it ends */
	uint64_t started_ns; /* of the control daemon or the server, whichever is younger */
	pid_t server;        /* 0: none is known */
};

struct td_node_io {
	/*
	 * Queues a message to the process's connection. peer.c closes a connection that cannot
	 * take it, later.
	 */
	void (*send)(void *peer, const struct td_msg *msg);
	/*
	 * Writes the gate word of the process and what belongs to it, and wakes who waits for it.
	 */
	void (*gate)(void *peer, uint32_t word, const struct td_pacing *pacing);
	/*
	 * Shows the process how much others of its job have allocated on the slot's GPU. NULL: not
	 * shown.
	 */
	void (*others)(void *peer, uint32_t slot, uint64_t bytes);
	/* An event was recorded; somebody may follow the events. */
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
	 * (stopped.h). NULL: processes are not looked at.
	 */
	enum td_stop (*stop)(void *peer, uint64_t *ret_cpu_ticks);
	/*
	 * Sends the process a signal: to the very process that is connected, never to a later one
	 * with its number. 0 or -errno. NULL: cannot.
	 */
	int (*signal)(void *peer, int signal);
	/*
	 * An action by hand has begun or changed its state (execute/actions.h). NULL: nobody waits.
	 */
	void (*acted)(void *arg, const struct td_act *act);
	/*
	 * Writes the ceilings of a slot (UINT64_MAX: none), and returns what the process has
	 * claimed there. NULL: cannot.
	 */
	struct td_ceiling (*ceiling)(void *peer, uint32_t slot, const struct td_ceiling *ceiling);
	/* Looks at MPS on the GPU. False: it is not managed there. NULL: it is managed nowhere. */
	bool (*mps)(void *arg, const uint8_t *uuid, struct td_mps_seen *ret);
	/* Makes the MPS server of the GPU drop its client `pid`. NULL: cannot. */
	void (*mps_terminate)(void *arg, const uint8_t *uuid, pid_t pid);
};

/* Whether a GPU's driver can map host memory, as a program with the swap backend has reported. */
enum td_host_memory {
	TD_HOST_MEMORY_UNKNOWN,
	TD_HOST_MEMORY_NO,
	TD_HOST_MEMORY_YES,
};

struct td_gpu {
	bool used;        /* false: a free place in the table */
	uid_t brought_by; /* the user whose program attached to it first */
	uint8_t uuid[16];
	char name[64];
	uint64_t total_bytes; /* gpus.h */
	/* gpu.capacity, or less if programs without tandem take memory of the GPU. */
	uint64_t capacity_bytes;
	/* The charges of its clients against the capacity; gathered anew in each step. */
	struct td_account account;
	/*
	 * Memory of the device that is in use, but by no client's allocations: contexts, strangers.
	 */
	uint64_t reserve_bytes;
	uint64_t shortage_bytes, shortage_until_ns, shortage_lasts_ns; /* capacity.c */
	bool shortage_heard;                                           /* since the last step */
	/* The memory of its clients that cannot leave it; quota.c gathers it in each step. */
	uint64_t stays_bytes;
	uint64_t stranded_bytes; /* the part that only a lack of host memory keeps there */
	uint64_t handover_ns;    /* smoothed; 0 unknown */
	uint64_t handovers;
	uint64_t drained_ns;    /* when the last holder was drained; 0: nothing measured since */
	uint64_t drained_moved; /* bytes moved on this GPU until then */
	struct td_alone alone;
	struct td_hang hang; /* of its MPS server */
	uint64_t xid_ns;     /* of the last Xid that was looked at for that */
	enum td_host_memory host_memory;
	bool shut; /* another daemon has it, as of shut_ns (0: never looked at) */
	uint64_t shut_ns;
	/* The share of its time that its clients' meters add up to; metering.c. */
	uint64_t metered_ppm;
};

struct td_client {
	struct td_list of_node, of_process;
	struct td_process *process;
	uint32_t id, gpu, slot;
	uint32_t sm_share_ppm; /* the share of SMs that it was started with, as it says; 0: none */
	uint64_t total_bytes;  /* the size of its GPU, as it says */
	/*
	 * The memory that its GRANTs let it use without asking, and the memory that it uses: on the
	 * device, and in all (with the memory on the host and that which the driver pages).
	 */
	struct td_holding device, total;
	uint64_t demanded_bytes; /* all its memory, without that which the driver pages */
	uint64_t host_bytes, peak_bytes, in_bytes, out_bytes, swap_ns;
	uint64_t fixed_bytes;    /* the part of the resident memory that cannot leave the device */
	uint64_t stranded_bytes; /* the part of fixed_bytes that only a lack of host memory keeps */
	uint64_t cached_bytes; /* the part of the memory that its allocator only keeps for reuse */
	/*
	 * The most and the least memory in use within its last step: by its allocator's word, if
	 * by_allocator is set, or else of demanded_bytes.
	 */
	uint64_t step_peak_bytes, step_least_bytes;
	bool by_allocator;
	/*
	 * The part of out_bytes that events have told; UINT64_MAX: nothing was reported to us yet.
	 */
	uint64_t shrunk_bytes;
	uint64_t spilled_bytes; /* the part on the host that the device can reach */
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
	 * Memory of others that it has opened, as it says; the time of the last change; the part of
	 * it that overhead_bytes may count as well.
	 */
	uint64_t imported_bytes, imported_ns, overhead_imported_bytes;
	/* Memory that it freed and others may still have open, as it says. */
	uint64_t given_up_bytes;
	bool has_news; /* some of the imported memory may have become its own since the last step */
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
	struct td_activity activity; /* of the GPU, by its meter */
	bool mps;                    /* it shares the GPU by MPS, as it says */
	struct td_profile profile;   /* shown to policies: show.c */
	bool ready;                  /* all its memory is resident, for this GRANT */
	bool was_there;              /* it was opened like that, and nothing has left since */
	/* The last GRANT that took memory away. */
	uint32_t lowered_seq;
	uint64_t lowered_bytes;
	uint64_t owes_ns; /* how long its GRANT has not been acknowledged; 0: it has. stopped.c */
	uint32_t owes_since_seq; /* the last acknowledged GRANT when that began */
	bool has_ceiling; /* its page bounds it until it has reported for this GRANT: stopped.h */
	/* The CUresult of a context that cannot work any more. Plans leave it out. 0: none. */
	uint32_t failed;
	/*
	 * Its program is coming to this GPU, or has left it (execute/moves.h). Plans leave it out.
	 */
	bool aside;
	bool needs; /* an allocation waits */
	enum td_asked asked;
	bool need_refuses; /* it wants an error rather than wait until others' memory can move */
	uint32_t need_ticket, need_seq; /* need_seq: GRANTs up to it are older than the ASK */
	uint64_t need_bytes, need_since_ns;
	uint64_t stranded_since_ns; /* need.c; 0: it is not */
	/*
	 * The client's own figures, and the memory that a verdict has granted beyond them (paged by
	 * the driver or not). promised_bytes counts until the GRANT promised_seq is acknowledged.
	 */
	uint64_t reported_bytes, reported_paged_bytes, reported_host_bytes, promised_bytes;
	bool promised_paged;
	uint32_t promised_seq;
	uint64_t others_bytes; /* the memory of others of its job, as shown to it last */
	/* The next ones are soft.c's. */
	bool spills;            /* it can keep a part of its memory on the host while it runs */
	enum td_gate told_gate; /* in the last GRANT */
	uint64_t soft_bytes;    /* the most that it is to have on the device */
	/* When it was asked to give back the excess by itself; 0: it was not. */
	uint64_t asked_ns;
	uint64_t asked_steps; /* its count of steps at that stage */
	enum { TD_ASKED, TD_ASKED_HEARD, TD_ASKED_COUNTED } asked_stage;
	/* The state when it was opened last, or when an exchange had ended. */
	struct {
		uint64_t limit_bytes, resident_bytes, spilled_bytes, too_much_bytes, at_ns;
		uint32_t vain; /* times in a row that it was opened and nothing had changed */
	} settled;
	struct td_grant grant; /* of the last plan */
};

/* Returns the memory of the device that the client uses, or may use by any GRANT still in force. */
static inline uint64_t td_client_charge(const struct td_client *client)
{
	return td_holding_charge(&client->device);
}

/* A process's memory that others may open, and its failures to open theirs (shares.c). */
struct td_shares {
	uint32_t handles, open;
	uint8_t unreachable; /* enum td_unreachable */
	uint32_t denied[TD_DENIED_N];
	uint8_t last;  /* enum td_denied, if any was */
	bool was_told; /* an event has said that it has handles */
	bool was_unreachable;
};

/* The part of the host's memory that one process may pin (host.c). */
struct td_host_part {
	struct td_holding holding;         /* used: its own figure, cut to what is possible */
	uint64_t wanted_bytes, used_bytes; /* as it says */
	uint64_t asked_ns;                 /* since when its ASK is open; 0: it is not */
	uint64_t bound_ns; /* when it was first told of a bound after a time without one */
	uint32_t ticket, bound_seq;
	uint8_t speaks; /* it has sent a message about the host's memory */
	uint8_t lacks;  /* the others were told that this one lacks some */
};

/* The looks at one process by stopped.c. All zero: it was never looked at. */
struct td_stop_watch {
	enum td_stop is;    /* the daemon does not wait for it: its turn goes to others */
	enum td_stop found; /* at the last look */
	bool heard;         /* it has said something since */
	uint64_t looked_ns, since_ns, cpu_ticks;
};

/* The end of a process that was told to leave (execute/endings.c). */
struct td_leave {
	uint64_t asked_ns; /* since when; 0: it is not to end */
	bool answered;
	uint8_t how; /* enum td_leaving, once it has answered */
	bool signalled, killed;
	bool let_go; /* its MPS server was told to drop it */
};

/* The move of a process to another GPU (execute/moves.h). */
struct td_moving {
	uint64_t number; /* of the act; 0: it does not move */
	uint8_t gpu[16];
	bool closes; /* its gate is closed for it */
	bool goes;   /* MOVE GO was sent: its memory is on its way */
	enum td_move_reason why;
	uint64_t reserved_bytes;
};

/* A move to another GPU that is over. */
struct td_moved {
	uint64_t at_ns, pause_ns, bytes;
	uint32_t from; /* that GPU's number */
	enum td_move_reason why;
};

/* Which CPUs a process runs on: server/cpus.h. */
enum td_cpus_state {
	TD_CPUS_ANY,
	TD_CPUS_BESTEFFORT, /* those of besteffort jobs */
	TD_CPUS_KEPT,       /* as somebody else wants it, or it could not be changed */
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
	unsigned complaints; /* how many REJECTED have come */
	struct td_stop_watch stop;
	bool wants, foreign; /* foreign: it runs as without tandem, see foreign.c */
	bool exchanges;      /* closed for an exchange of memory, not for another process */
	/*
	 * The CUresult of a context that cannot work any more, as then none of the process can. It
	 * runs as without tandem until it has another context. 0: none.
	 */
	uint32_t failed;
	uint8_t foreign_gpu[16]; /* the UUID of the GPU that another daemon has */
	bool stays_foreign;      /* foreign for good, as no plan can be about it */
	/*
	 * Why it runs as without tandem, where no other daemon is the reason. Empty: it does not.
	 */
	char ungoverned[192];
	uint32_t filling; /* foreign: a bit for each slot whose memory has to come back first */
	uint64_t wants_since_ns, idle_since_ns, closed_ns; /* closed_ns: when it was last drained */
	uint32_t word;                                     /* as written last, with pacing */
	struct td_pacing pacing;
	bool shares_moments;                  /* alone.c: it has moments alone, in its turn */
	uint32_t hold, alone;                 /* alone.c: as in the page */
	uint32_t word_count;                  /* changes so far: the upper bits of the word */
	uint64_t drain_deadline_ns, retry_ns; /* retry_ns: after STUCK, not closed before this */
	uint32_t drain_overruns;
	/* The process writes this page, so its figures are not trusted. NULL: there is none. */
	const struct td_meter_page *meter;
	struct td_steps_told steps;
	/*
	 * The process writes this page too. Its part about layers is there even if the process is
	 * no service.
	 */
	const struct td_service_page *service_page;
	struct td_service *service; /* its figures; NULL: it has not said that it is a service */
	struct td_shares shares;
	struct td_host_part host;
	uint32_t can; /* TD_CAN_* */
	struct td_moving moving;
	uint64_t unmovable;    /* TD_UNMOVABLE: why it cannot move, as it says */
	bool told_movable;     /* MOVABLE has come */
	uint64_t moves;        /* how many have ended */
	struct td_moved moved; /* the last one */
	struct td_leave leave;
	bool has_left; /* LEFT has come: its death cannot harm MPS any more */
	enum td_cpus_state cpus;
	char *came_from; /* the control group before TD_CPUS_BESTEFFORT; NULL: not known */
	uint64_t started_ns, held_ns, waited_ns, launches, handovers;
	uint8_t candidates[TD_GPU_MAX][16]; /* the GPUs that its PLACE messages have named so far */
	uint32_t candidate_count;
};

/* The client or process of an element of the node's lists. */
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
	struct td_list supervisors;              /* in order of arrival: supervisors.h */
	uint32_t last_looked;                    /* stopped.h: the id of the last one looked at */
	uint64_t answers_looked_ns;              /* stopped.h: the last step */
	struct td_list tenants;
	uint32_t tenant_count;
	struct td_list acts; /* execute/actions.h: in order of their numbers */
	uint64_t last_act;   /* the highest number so far; not below that of any order */
	const struct td_policy *acts_policy;     /* the policy that ordered the pauses */
	struct td_action actions[TD_ACTION_MAX]; /* of the plan that is being carried out */
	uint32_t last_moment;                    /* number of the last moment alone, on any GPU */
	struct td_profiles profiles;
	uint64_t event_ns; /* the time of the events of profiles.c */
	/* No gate opens before: programs that a daemon before us had let in connect first. */
	uint64_t settle_ns;
	/* The policy's side. */
	void *policy_state;
	const struct td_policy *policy; /* the policy that has that state */
	struct td_gpu_view gpu_views[TD_GPU_MAX];
	struct td_gpu_verdict verdicts[TD_GPU_MAX]; /* of the last step */
	struct td_client_view views[TD_CLIENT_MAX];
	struct td_grant grants[TD_CLIENT_MAX];
	struct td_client *shown[TD_CLIENT_MAX]; /* the clients of these rows */
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

/*
 * A process says HELLO. NULL if memory is short. pid and uid come from the kernel, not from the
 * message.
 */
struct td_process *td_node_hello(struct td_node *node, void *peer, pid_t pid, uid_t uid,
	const struct td_msg_hello *hello, uint64_t now_ns);

/*
 * Any later message of a client process. 0, or -EPROTO if it is not valid: the caller drops the
 * connection.
 */
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
/*
 * Lets the process run as without tandem (foreign.c). why: -EBUSY: another daemon has its GPU;
 * -ENOSPC: there is no place for it here.
 */
void td_node_let_go(struct td_node *node, struct td_process *process, const uint8_t *uuid,
	const struct td_err *why, uint64_t now_ns);
/* UNGOVERNED. 0 or -EPROTO. */
int td_node_ungoverned(struct td_node *node, struct td_process *process,
	const struct td_msg_ungoverned *msg, uint64_t now_ns);
/* Tells whether the GPU is ours or free. True where that cannot be known. */
bool td_node_may_have(struct td_node *node, const uint8_t *uuid);
int td_node_foreign_message(
	struct td_node *node, struct td_process *process, const struct td_msg *msg);

/*
 * Returns the pacing of the process, by the plan and by what was set for its job by hand.
 * pacing.c
 */
struct td_pacing td_node_pacing(
	const struct td_node *node, const struct td_process *process, const struct td_grant *grant);

/*
 * Returns TD_FRESH_*: whether the process has work that it has never done before, as it says, and
 * how often that was tried so far. pacing.c
 */
uint32_t td_process_fresh(const struct td_process *process, uint32_t *ret_tries);

/* Forgets all that is under way (execute/actions.c). */
void td_actions_deinit(struct td_node *node);
/* MOVABLE and MOVED. 0 or -EPROTO. moves.c */
int td_move_message(struct td_node *node, struct td_process *process, const struct td_msg *msg,
	uint64_t now_ns);
/*
 * The process cannot attach to a GPU. Returns true if it was to move there: then the move is given
 * up, and the process stays where it is. why: a sentence.
 */
bool td_move_has_no_place(struct td_node *node, struct td_process *process,
	const struct td_msg_attach *attach, const char *why, uint64_t now_ns);
/* LEAVING. 0 or -EPROTO. endings.c */
int td_process_leaving(struct td_process *process, const struct td_msg_leaving *msg);

/* Lets the policy decide and carries the plan out. Returns when to step again, or TD_NEVER. */
uint64_t td_node_step(struct td_node *node, uint64_t now_ns);

/*
 * Gives programs with duties that share a GPU the whole GPU in turn, for moments
 * (policy/node/alone.h). Returns when to step again, or TD_NEVER. alone.c
 */
uint64_t td_node_step_alone(struct td_node *node, uint64_t now_ns);

/* Checks what td_node_set_job would do, and changes nothing. */
int td_node_check_job(const struct td_node *node, uid_t uid, const char *job, const char *key,
	const char *value, struct td_err *err);

/*
 * Sets an option (job.h) of all jobs of the user that have the name; for root, of everybody. 0,
 * -ENOENT (the user has no job of that name), -EINVAL, -ERANGE or -EDQUOT with a sentence. job.c
 */
int td_node_set_job(struct td_node *node, uid_t uid, const char *job, const char *key,
	const char *value, uint64_t now_ns, struct td_err *err);

/* An option of the node was changed by hand: capacities and the policy are adapted. */
void td_node_options_changed(struct td_node *node, uint64_t now_ns, const char *what);

/* Tells whether the text is the process's job id, name or pid. */
bool td_process_is_named(const struct td_process *process, const char *job);

/*
 * BACKEND: the backend that the process has chosen, or why its memory moves no more. 0, or -EPROTO:
 * it is too late for that, or not valid.
 */
int td_process_backend(struct td_process *process, const struct td_msg_backend *msg);

/* SHARES and DENIED. 0 or -EPROTO. */
int td_shares_message(struct td_node *node, struct td_process *process, const struct td_msg *msg,
	uint64_t now_ns);

/*
 * "running", "waiting", "idle", "leaving", "draining", "filling", "paused", "stopped",
 * "unresponsive", "failed", "foreign" or "ungoverned".
 */
const char *td_process_state(const struct td_process *process);
/* The same, with a look at whether it is stopped at this moment. */
const char *td_process_state_now(const struct td_node *node, const struct td_process *process);

/*
 * Returns since when the process waits, if it does: since it asked for the GPU or, if its gate was
 * closed after that, since then.
 */
uint64_t td_process_waits_since_ns(const struct td_process *process);

/* Time waited up to now. */
uint64_t td_process_waited_ns(const struct td_process *process, uint64_t now_ns);

/* Held time up to now. */
uint64_t td_process_held_ns(const struct td_process *process, uint64_t now_ns);

void td_node_event(struct td_node *node, enum td_event_kind kind, const struct td_process *process,
	uint32_t gpu, uint64_t now_ns, uint64_t value_ns, uint64_t value_bytes, const char *detail);
/* Records an event of a job that may be gone. */
void td_node_job_event(struct td_node *node, enum td_event_kind kind, uid_t uid, const char *job,
	const char *name, uint64_t now_ns, const char *detail);
/* Records an event of a GPU, by its number; process may be NULL. */
void td_node_gpu_event(struct td_node *node, enum td_event_kind kind,
	const struct td_process *process, uint32_t number, uint64_t now_ns, const char *detail);
