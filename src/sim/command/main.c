/*
 * tandem-sim runs the policies on a virtual clock. `run` takes the user's trace and cluster,
 * `requests` computes the load of a file of requests on a GPU, `experiment` repeats the papers'
 * experiments.
 */
#include <string.h>

#include "base/program.h"
#include "sim/base/sim.h"
#include "sim/scheduler/schedulers.h"

static void usage(FILE *out)
{
	fputs("usage: tandem-sim run --trace FILE --cluster FILE [--policy P] [--compare P,P] "
	      "[OPTION]...\n"
	      "       tandem-sim requests --requests FILE [OPTION]...\n"
	      "       tandem-sim experiment NAME|all [--data DIR] [--quick] [--seeds N] [--jobs N] "
	      "[--out DIR]\n"
	      "       tandem-sim experiment --list\n\n"
	      "What would sharing gain? Jobs of a trace on a cluster, in virtual time, by the "
	      "policies' own code.\n\n"
	      "Options of run:\n"
	      "  --trace FILE         jobs, CSV or CSV.gz: submit_time_s, duration_s, num_gpus and "
	      "more\n"
	      "  --cluster FILE       nodes, CSV: node, num_gpus, gpu_memory_gib\n"
	      "  --policy P           one of those below (default: tandem)\n"
	      "  --compare P,P        others to compare it with (default: fifo,antman)\n"
	      "  --seed N             for what the trace does not say (default: 1)\n"
	      "  --out DIR            summary.csv, summary.json, jobs-P.csv, report.html\n"
	      "  --guaranteed SHARE   of the tenants whose jobs have no class (default: 0%)\n"
	      "  --profiles FILE      kinds of jobs, from fit-model; else one generic kind\n"
	      "  --gpu NAME           whose rows of --profiles (default: p100)\n"
	      "  --contention HOW     fitted or proportional (default: fitted)\n"
	      "  --restart TIME       cost of starting again (default: 60s)\n"
	      "  --checkpoint TIME    between a job's checkpoints (default: 30m)\n"
	      "  --skip-bad           leave out lines that cannot be read, and say how "
	      "many\n\n"
	      "Options of requests (what they ask of a GPU each service has for itself):\n"
	      "  --requests FILE      CSV or CSV.gz: arrival_s or inter_arrival_s, service and "
	      "more\n"
	      "  --request-time TIME  of one alone; n at once take (1 + n) / 2 of it (default: "
	      "20ms)\n"
	      "  --batch N            served at once, at most (default: 16)\n"
	      "  --objective TIME     of P99 (default: 300ms)\n"
	      "  --window TIME        of the peak and of load.csv (default: 60s)\n"
	      "  --out DIR            requests.csv, load.csv\n"
	      "  --skip-bad           as above\n\nPolicies:\n",
		out);
	for (int i = 0; td_scheds[i]; i++)
		fprintf(out, "  %-10s %s\n", td_scheds[i]->name, td_scheds[i]->summary);
}

static int dispatch(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (td_asks_help(argv[i])) {
			usage(stdout);
			return 0;
		}
	}
	if (argc == 2 && td_asks_version(argv[1])) {
		puts("tandem-sim " TANDEM_VERSION);
		return 0;
	}
	if (argc < 2) {
		usage(stderr);
		return TD_SIM_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "run"))
		return td_sim_run(argc - 1, argv + 1);
	if (!strcmp(argv[1], "experiment"))
		return td_sim_experiment(argc - 1, argv + 1);
	if (!strcmp(argv[1], "requests"))
		return td_sim_requests(argc - 1, argv + 1);
	return td_sim_fail(
		"\"%.64s\" is not a verb: expected run, requests or experiment", argv[1]);
}

int main(int argc, char **argv)
{
	return td_output_end("tandem-sim", dispatch(argc, argv), TD_SIM_EXIT_USAGE);
}
