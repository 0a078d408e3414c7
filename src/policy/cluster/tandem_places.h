/* Parts of tandem's scheduler of a cluster (tandem_cluster.h) that its files share. */
#pragma once

#include "policy/cluster/tandem_cluster.h"

struct td_tandem_company {
	uint32_t kinds[TD_GUESTS], count, holder; /* holder: its kind, or UINT32_MAX */
	uint64_t bytes;
	double room;
};

/*
 * The figure that judges a room: a job that starts has nothing to lose, a job that moves needs a
 * room that lasts.
 */
enum td_tandem_judge { TD_BY_NOW, TD_BY_MEAN };

/* The jobs on a GPU except one, guest or holder. */
struct td_tandem_company td_tandem_company(const struct td_tandem_cluster *cluster, uint32_t gpu,
	uint32_t but, enum td_tandem_judge judge);
/*
 * Returns the speed of a guest among `here` and, unless UINT32_MAX, one more kind. `self` is its
 * own index in the company, or UINT32_MAX.
 */
double td_tandem_speed(const struct td_tandem_cluster *cluster,
	const struct td_tandem_company *here, uint32_t kind, uint32_t self, uint32_t more);
/*
 * Speed of a guest that joins while `but` is not there, and what all gain by it. False: it may not,
 * or there is no room.
 */
bool td_tandem_weigh(const struct td_tandem_cluster *cluster, uint32_t gpu, uint32_t job,
	uint32_t but, enum td_tandem_judge judge, struct td_tandem_choice *ret);
/*
 * Puts the best candidates first in cluster->choices, by falling score, as many as the job needs.
 * Returns how many there are.
 */
uint32_t td_tandem_choose(struct td_tandem_cluster *cluster, uint32_t job, bool idle_too,
	enum td_tandem_judge judge, double floor);

/* The room of a GPU, its mean over the window, and its integral up to now. */
double td_tandem_mean_room(const struct td_tandem_cluster *cluster, uint32_t gpu);
double td_tandem_room_sum(const struct td_tandem_cluster *cluster, uint32_t gpu);

void td_tandem_note_load(struct td_tandem_cluster *cluster, uint32_t gpu);
/* The job's GPUs are the first of cluster->choices; it is a guest or their holder. */
void td_tandem_settle(struct td_tandem_cluster *cluster, uint32_t job, uint64_t now_ns);
void td_tandem_vacate(struct td_tandem_cluster *cluster, uint32_t job);

/* tandem_queue.c: starts and preempts; tandem_moves.c: moves guests. */
void td_tandem_start(struct td_tandem_cluster *cluster, uint64_t now_ns);
void td_tandem_move(struct td_tandem_cluster *cluster, uint64_t now_ns);
/* A waiting job begins to run on the first GPUs of cluster->choices. */
void td_tandem_place(struct td_tandem_cluster *cluster, uint32_t job, uint64_t now_ns);
/* Frees what a running job has. */
void td_tandem_stop(struct td_tandem_cluster *cluster, uint32_t job);
void td_tandem_act(struct td_tandem_cluster *cluster, enum td_tandem_verb verb, uint32_t job);
