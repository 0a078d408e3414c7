/* Parts of tandem's scheduler of a cluster (tandem_cluster.h) that its files share. */
#pragma once

#include "policy/cluster/tandem_cluster.h"

struct td_tandem_company {
	uint32_t kinds[TD_GUESTS], count, holder; /* holder: the holder's kind, or UINT32_MAX */
	uint64_t bytes;
	double room;
};

/*
 * The figure of a room that counts: the present one for a job that starts and has nothing to lose;
 * the mean for a job that moves, because it needs a room that lasts.
 */
enum td_tandem_judge { TD_BY_NOW, TD_BY_MEAN };

/* Returns the jobs on a GPU without job `but`. */
struct td_tandem_company td_tandem_company(const struct td_tandem_cluster *cluster, uint32_t gpu,
	uint32_t but, enum td_tandem_judge judge);
/*
 * Returns the speed of a guest of this kind beside `here` and one job of kind `more`, unless that
 * is UINT32_MAX. `self` is the guest's index in `here`, or UINT32_MAX if it is not among them.
 */
double td_tandem_speed(const struct td_tandem_cluster *cluster,
	const struct td_tandem_company *here, uint32_t kind, uint32_t self, uint32_t more);
/*
 * Writes the speed of a guest that joins this GPU after job `but` has left, and the gain of all
 * jobs by it. Returns false if it may not run there, or the memory does not suffice.
 */
bool td_tandem_weigh(const struct td_tandem_cluster *cluster, uint32_t gpu, uint32_t job,
	uint32_t but, enum td_tandem_judge judge, struct td_tandem_choice *ret);
/*
 * Puts the best GPUs for the job first in cluster->choices, by falling score. Returns their number,
 * which is below the job's need if too few are good enough.
 */
uint32_t td_tandem_choose(struct td_tandem_cluster *cluster, uint32_t job, bool idle_too,
	enum td_tandem_judge judge, double floor);

/* Returns the mean room of a GPU over the window; td_tandem_room_sum() its integral up to now. */
double td_tandem_mean_room(const struct td_tandem_cluster *cluster, uint32_t gpu);
double td_tandem_room_sum(const struct td_tandem_cluster *cluster, uint32_t gpu);

void td_tandem_note_load(struct td_tandem_cluster *cluster, uint32_t gpu);
/* Takes the first GPUs of cluster->choices for the job, as their guest or their holder. */
void td_tandem_settle(struct td_tandem_cluster *cluster, uint32_t job, uint64_t now_ns);
void td_tandem_vacate(struct td_tandem_cluster *cluster, uint32_t job);

/* Starts and preempts jobs (tandem_queue.c), and moves guests (tandem_moves.c). */
void td_tandem_start(struct td_tandem_cluster *cluster, uint64_t now_ns);
void td_tandem_move(struct td_tandem_cluster *cluster, uint64_t now_ns);
/* Starts a waiting job on the first GPUs of cluster->choices. */
void td_tandem_place(struct td_tandem_cluster *cluster, uint32_t job, uint64_t now_ns);
/* Frees the GPUs of a running job. */
void td_tandem_stop(struct td_tandem_cluster *cluster, uint32_t job);
void td_tandem_act(struct td_tandem_cluster *cluster, enum td_tandem_verb verb, uint32_t job);
