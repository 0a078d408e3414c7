/*
 * The GPUs of a cluster as placement sees them: which are free, which are reserved, which are least
 * loaded.
 *
 * Purpose. Every cluster policy asks the same three questions: a node with k free GPUs (AntMan's
 * topology constraint), any k free GPUs, the k least loaded GPUs. With 20,000 GPUs an answer may
 * take microseconds, so no question looks at all GPUs: nodes are in lists by their number of free
 * GPUs, loads in a tournament tree.
 *
 * A GPU has at most one holder (a job with guaranteed resources) and up to TD_GUESTS guests
 * (opportunistic jobs). It may be reserved for a job that waits for more; "the reserved resources
 * will never be occupied by other resource guarantee jobs, however, they can be utilized by
 * opportunistic" ones (AntMan 3.3). Load is the monitor's figure for the last ten seconds. A job
 * placed since then, holder or guest, counts as `assumed_ppm` until the monitor's next report, so
 * that arrivals in a burst spread out.
 *
 * Invariants
 * - a node's free count is the number of its GPUs with neither holder nor reservation, and it is in
 *   that count's list;
 * - a fit is best fit: the node with the fewest free GPUs that suffice, and among equals the one
 *   that came to that number last;
 * - the assumed load of a job goes with that job alone;
 * - the tree's minimum is the least loaded GPU, the first among equals; a GPU with the most guests
 *   is not in the tree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_NO_JOB          UINT32_MAX
#define TD_CLUSTER_ABSENT  (UINT32_MAX - 2) /* the holder of a GPU that is down */
#define TD_TANDEM_FULL_PPM 10000000u        /* a load at which no job is placed */
#define TD_GUESTS          4u
#define TD_NODE_GPUS_MAX   16u

/*
 * A job may be bound to the nodes of a pool, from 1 to TD_POOLS - 1, such as a partition of a batch
 * system. TD_ANYWHERE is all nodes.
 */
#define TD_ANYWHERE 0u
#define TD_POOLS    32u

/* Jobs that may not come to a GPU. Those that are there stay. */
enum td_inventory_bar { TD_BAR_NOTHING, TD_BAR_GUESTS, TD_BAR_ALL };

struct td_inventory {
	uint32_t gpu_count, node_count;
	uint32_t idle;          /* GPUs without holder, guest or reservation */
	uint32_t node_gpus_max; /* GPUs of the largest node */
	uint32_t assumed_ppm;
	/* These arrays have one entry per GPU. */
	uint32_t *node, *holder, *reserved, *load_ppm, *guest_count, *barred;
	uint32_t *
		/*
		 * Jobs that the monitor has not seen yet: bit k is guest k, bit TD_GUESTS the
		 * holder.
		 */
		unseen;
	uint32_t *guest; /* TD_GUESTS entries per GPU */
	/* These arrays have one entry per node. */
	uint32_t *first_gpu; /* node_count + 1 entries */
	uint32_t *free_count, *next, *previous;
	uint32_t *pools;                       /* bit k: the node is in pool k */
	uint32_t bucket[TD_NODE_GPUS_MAX + 1]; /* entry k: the first node with k free GPUs */
	/* The tournament tree of the loads. */
	uint64_t *tree;
	uint32_t leaves;
	uint64_t changes; /* changes of the tree; answers stay valid while it is the same */
	uint32_t limit_ppm, below; /* below: number of GPUs that td_inventory_watch() counts */
};

size_t td_inventory_bytes(uint32_t nodes, uint32_t gpus);

/*
 * Makes an inventory whose GPUs are all free and idle. node_gpus[n] is the number of GPUs of node
 * n, 1 to TD_NODE_GPUS_MAX. Returns 0, or -EINVAL.
 */
int td_inventory_init(struct td_inventory *inventory, void *memory, const uint32_t *node_gpus,
	uint32_t nodes, uint32_t assumed_ppm);

/*
 * Starts counting the GPUs that td_inventory_find_least_loaded() would find with this limit, in
 * `below`.
 */
void td_inventory_watch(struct td_inventory *inventory, uint32_t limit_ppm);

/* Sets the utilisation of a GPU over the last ten seconds, as the monitor reports it. */
void td_inventory_set_load(struct td_inventory *inventory, uint32_t gpu, uint32_t load_ppm);

/* A GPU that is barred is not found: for guests, or for nobody. */
void td_inventory_bar(struct td_inventory *inventory, uint32_t gpu, enum td_inventory_bar bar);

/*
 * Sets the holder of a GPU, or its reservation; TD_NO_JOB clears it. A new holder counts as a load
 * of assumed_ppm until the monitor has seen it, as a new guest does.
 */
void td_inventory_hold(struct td_inventory *inventory, uint32_t gpu, uint32_t job);
void td_inventory_reserve(struct td_inventory *inventory, uint32_t gpu, uint32_t job);

void td_inventory_add_guest(struct td_inventory *inventory, uint32_t gpu, uint32_t job);
void td_inventory_remove_guest(struct td_inventory *inventory, uint32_t gpu, uint32_t job);

/*
 * Makes a guest the holder of the GPU. A guest that counts as a load of assumed_ppm, because the
 * monitor has not reported since it came, goes on to count so.
 */
void td_inventory_promote(struct td_inventory *inventory, uint32_t gpu, uint32_t job);

/*
 * Finds free GPUs for a job, including its own reservations. They are on one node (or on whole
 * nodes, beyond the largest node's size) or anywhere, from the fullest nodes on. GPUs without
 * guests come first ("optimized to maximize the job performance using the free GPU resources",
 * AntMan 3.3). Returns how many were found: at most count, and fewer if no more are free.
 */
uint32_t td_inventory_find_free(const struct td_inventory *inventory, uint32_t job, uint32_t count,
	bool same_node, uint32_t *ret_gpus);

/* Sets the pools of a node, as bits. At first a node is in all. */
void td_inventory_set_pools(struct td_inventory *inventory, uint32_t node, uint32_t pools);
bool td_inventory_is_in(const struct td_inventory *inventory, uint32_t gpu, uint32_t pool);

/*
 * Like td_inventory_find_free() and td_inventory_find_least_loaded(), among the GPUs of a pool. The
 * second one looks at all GPUs unless the pool is TD_ANYWHERE.
 */
uint32_t td_inventory_find_free_in(const struct td_inventory *inventory, uint32_t job,
	uint32_t count, bool same_node, uint32_t pool, uint32_t *ret_gpus);
uint32_t td_inventory_find_least_loaded_in(struct td_inventory *inventory, uint32_t count,
	uint32_t limit_ppm, uint32_t pool, uint32_t *ret_gpus);
/*
 * Like td_inventory_find_least_loaded_in(), but all GPUs are on one node, that with the least
 * loaded ones. Returns count, or 0 if no node has as many.
 */
uint32_t td_inventory_find_least_loaded_on_one(const struct td_inventory *inventory, uint32_t count,
	uint32_t limit_ppm, uint32_t pool, uint32_t *ret_gpus);

/*
 * Finds up to `count` GPUs with a load below the limit, least loaded first. Returns their number.
 */
uint32_t td_inventory_find_least_loaded(
	struct td_inventory *inventory, uint32_t count, uint32_t limit_ppm, uint32_t *ret_gpus);
