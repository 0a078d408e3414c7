/* Has the table of experiments. */
#include "sim/report/experiment.h"

const struct td_experiment td_experiments[] = {
	{"nvshare-table2", "two copies of four programs on a P100 of 16 GB, time quanta", false,
		td_exp_nvshare_table2},
	{"antman-table2", "two jobs on one GPU of 32 GB", true, td_exp_antman_table2},
	{"antman-trace", "800 Philly jobs on 64 GPUs at five loads", true, td_exp_antman_trace},
	{"dcuda", "20 applications on 4 GPUs in 50 orders, least-loaded against DCUDA", true,
		td_exp_dcuda},
	{"dcuda-memory", "35 applications of 217 GB on 4 GPUs of 12 GB", false,
		td_exp_dcuda_memory},
	{"muxflow-sim", "offline jobs beside 1,000 services, MuxFlow against time-sharing", true,
		td_exp_muxflow_sim},
	{"muxflow-ablation", "MuxFlow without its shares, its matching, and both", true,
		td_exp_muxflow_ablation},
	{"muxflow-predictor", "the multi-layer perceptron's depth and width", true,
		td_exp_muxflow_predictor},
	{"mudi-sim", "5,000 training tasks beside 1,000 services under latency objectives", true,
		td_exp_mudi_sim},
	{"mixed", "services, guaranteed and besteffort jobs and notebooks, oversubscribed", true,
		td_exp_mixed},
	{"queues", "Philly, Helios and Alibaba at 0.6 to 3 times the cluster", true, td_exp_queues},
	{"scale", "Philly times 32 on 20,000 GPUs", true, td_exp_scale},
	{"alibaba", "8,152 pods on 1,523 nodes", true, td_exp_alibaba},
	{NULL, NULL, false, NULL},
};
