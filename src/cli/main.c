/* tandem: the table of verbs, from which the usage is printed and the verb is called. */
#include <stdarg.h>
#include <string.h>

#include "base/program.h"
#include "cli/cli.h"

const struct td_verb td_verbs[] = {
	{"run", "[OPTION]... [--] COMMAND [ARG]...", "run a program that shares its GPU",
		td_verb_run},
	{"ps", "[--json]", "who uses the GPUs, and how", td_verb_ps},
	{"top", "[OPTION]...", "GPUs and jobs, live: see tandem top --help", td_verb_top},
	{"web", "[OPTION]...", "the same as a page of a browser: see tandem web --help",
		td_verb_web},
	{"gpu", "[--json]", "the GPUs that are shared", td_verb_gpu},
	{"metrics", "", "GPUs and jobs as Prometheus reads them", td_verb_metrics},
	{"set", "[JOB] [KEY=VALUE]...", "show options of the daemon or of a job, or change them",
		td_verb_set},
	{"policies", "[--json]", "which policies can decide here, and what others lack",
		td_verb_policies},
	{"pause", "[--json] JOB", "take the GPU from a job until it is resumed", td_verb_act},
	{"resume", "[--json] JOB", "let a paused job go on", td_verb_act},
	{"evict", "[--json] JOB", "end a job, by SIGTERM first, and wait until it has ended",
		td_verb_act},
	{"restart", "[--json] JOB [SHARE]",
		"end a job and start it again, or let a second instance take over", td_verb_act},
	{"migrate", "[--json] JOB GPU", "move a running job to another GPU", td_verb_act},
	{"share", "[--json] JOB SHARE", "give a running job another share of the SMs, under MPS",
		td_verb_act},
	{"checkpoint", "[--json] JOB", "take a job off its GPUs onto the host, by the driver",
		td_verb_act},
	{"restore", "[--json] JOB", "bring a checkpointed job back to its GPUs", td_verb_act},
	{"events", "[-f] [--json]", "who got and gave the GPU, when and why", td_verb_events},
	{"explain", "[--json] JOB", "why is this job waiting, or running?", td_verb_explain},
	{"profile", "[OPTION]... -- COMMAND [ARG]...",
		"measure a program alone, and keep its figures: see tandem profile --help",
		td_verb_profile},
	{"model", "[OPTION]... [NAME]",
		"what is known of services and of their neighbours: see tandem model --help",
		td_verb_model},
	{"predict", "[OPTION]... ONLINE BESTEFFORT",
		"how fast one program would run beside another", td_verb_profile},
	{"doctor", "[--json] [PROGRAM]...", "does sharing work here, and for this program?",
		td_verb_doctor},
	{"layers", "[--json] FILE", "the layers of the neural network in an ONNX file",
		td_verb_layers},
	{"completion", "SHELL", "what completes this in a shell: bash, zsh or fish",
		td_verb_completion},
	{"stop", "[--force]", "stop the daemon, and wait until it has ended", td_verb_stop},
	{NULL, NULL, NULL, NULL},
};

int td_cli_fail(const char *format, ...)
{
	va_list args;

	fputs("tandem: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return TD_EXIT_USAGE;
}

#define HELP_OF_JOB "A JOB is named by its id, name or pid as `tandem ps` shows them."

static void usage(FILE *out)
{
	fputs("usage: tandem VERB ...\n\nShares NVIDIA GPUs among unmodified CUDA programs.\n\n",
		out);
	for (const struct td_verb *verb = td_verbs; verb->name; verb++)
		fprintf(out, "  %-10s %-34s %s\n", verb->name, verb->arguments, verb->help);
	fputs("\n" HELP_OF_JOB "\nOptions of run: see tandem run --help.\n", out);
}

static bool has_own_help(const char *verb)
{
	static const char *const verbs[] = {"run", "top", "web", "profile", "predict", "model"};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(verb, verbs[i]))
			return true;
	return false;
}

static const struct td_verb *find_verb(const char *name)
{
	for (const struct td_verb *verb = td_verbs; verb->name; verb++)
		if (!strcmp(verb->name, name))
			return verb;
	td_cli_fail("\"%.64s\" is not a verb: expected one such as run, ps, gpu or explain: see "
		    "tandem --help",
		name);
	return NULL;
}

static int help_of(const struct td_verb *verb)
{
	char name[16], option[] = "--help", *words[] = {name, option, NULL};

	if (has_own_help(verb->name)) {
		snprintf(name, sizeof(name), "%s", verb->name);
		return verb->run(2, words);
	}
	printf("usage: tandem %s%s%s\n\n%s\n", verb->name, *verb->arguments ? " " : "",
		verb->arguments, verb->help);
	if (strstr(verb->arguments, "JOB"))
		puts("\n" HELP_OF_JOB);
	return 0;
}

static int dispatch(int argc, char **argv)
{
	const struct td_verb *verb;
	bool asks_help;

	if (argc < 2) {
		usage(stderr);
		return TD_EXIT_USAGE;
	}
	if (td_asks_version(argv[1]) || !strcmp(argv[1], "version")) {
		puts("tandem " TANDEM_VERSION);
		return 0;
	}
	asks_help = td_asks_help(argv[1]) || !strcmp(argv[1], "help");
	if (asks_help && argc == 2) {
		usage(stdout);
		return 0;
	}
	verb = find_verb(argv[asks_help ? 2 : 1]);
	if (!verb)
		return TD_EXIT_USAGE;
	if (asks_help || (argc > 2 && td_asks_help(argv[2]) && !has_own_help(verb->name)))
		return help_of(verb);
	return verb->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	return td_output_end("tandem", dispatch(argc, argv), TD_EXIT_USAGE);
}
