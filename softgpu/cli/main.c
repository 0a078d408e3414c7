/*
 * softgpu: a GPU in software, for trying and testing. Verbs: start, run, status, reset-counters,
 * stop.
 *
 * The libraries that replace NVIDIA's are found beside the program: in bin/../lib/softgpu, in the
 * build tree and when installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "model/gpu_spec.h"
#include "softgpu/cli/cli.h"
#include "softgpu/server/client.h"
#include "softgpu/server/serve.h"

#define START_TRIES 100
/*
 * The bounds of a rate in bytes per second: it is kept as a uint32_t of bytes per microsecond and
 * must be at least 1.
 */
#define RATE_LEAST (1ull << 20)
#define RATE_MOST  (3900ull << 40)
#define fail       sg_cli_fail

int sg_cli_fail(const char *format, const char *text)
{
	/* Prints the format, all of which are below and take one %s, with the argument. */
	fputs("softgpu: ", stderr);
	for (const char *p = format; *p; p++) {
		if (p[0] == '%' && p[1] == 's') {
			fputs(text, stderr);
			p++;
		} else {
			fputc(*p, stderr);
		}
	}
	fputc('\n', stderr);
	return EXIT_OURS;
}

struct start {
	struct td_gpu_spec spec;
	uint64_t gpus, memory_bytes;
	bool has_memory;
	uint32_t features;
	bool foreground;
	char dir[PATH_MAX];
};

int sg_cli_parse_rate(const char *text, uint64_t *ret_bytes_per_s, struct td_err *err)
{
	uint64_t rate = 0;
	int r = td_parse_size(text, 0, &rate, NULL);

	if (!r && (rate < RATE_LEAST || rate > RATE_MOST))
		r = -ERANGE;
	if (r)
		return td_err_expected(
			err, r, text, "a rate from 1m to 3900t per second such as 12g");
	*ret_bytes_per_s = rate;
	return 0;
}

/* Rates are typed as bytes per second and kept as bytes per microsecond. */
static int set_rate(const char *value, uint32_t *ret, struct td_err *err)
{
	uint64_t rate = 0;
	int r = sg_cli_parse_rate(value, &rate, err);

	if (!r)
		*ret = (uint32_t)(rate / 1000000);
	return r;
}

static int set_field(struct td_gpu_spec *spec, const char *pair, struct td_err *err)
{
	const struct {
		const char *key;
		uint32_t *rate;
		uint64_t *time;
	} fields[] = {
		{"link", &spec->pinned_bytes_per_us, NULL},
		{"faults", &spec->fault_bytes_per_us, NULL},
		{"prefetch", &spec->prefetch_bytes_per_us, NULL},
		{"fault-latency", NULL, &spec->fault_latency_ns},
		{"slice", NULL, &spec->slice_ns},
		{"switch", NULL, &spec->switch_ns},
		{"launch", NULL, &spec->launch_latency_ns},
	};
	size_t n = strcspn(pair, "=");

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct td_err why = {0};
		int r;

		if (!pair[n] || strlen(fields[i].key) != n || strncmp(fields[i].key, pair, n))
			continue;
		r = fields[i].rate ? set_rate(pair + n + 1, fields[i].rate, &why)
				   : td_parse_duration(pair + n + 1, fields[i].time, &why);
		return r ? td_err_set(err, r, "--set %s: %.400s", fields[i].key, why.msg) : 0;
	}
	return td_err_set(err, -EINVAL,
		"--set: \"%.64s\" is not a field with its value: expected link, faults, prefetch, "
		"fault-latency, slice, switch or launch, and =VALUE",
		pair);
}

/* Checks that the GPU's memory has room for a context and for what programs do in it. */
static int check_memory(const struct td_gpu_spec *spec, struct td_err *err)
{
	uint64_t least = 4 * spec->context_bytes;
	char given[32], needed[32], context[32];

	if (spec->memory_bytes >= least)
		return 0;
	td_format_size(given, sizeof(given), spec->memory_bytes);
	td_format_size(needed, sizeof(needed), least);
	td_format_size(context, sizeof(context), spec->context_bytes);
	return td_err_set(err, -ERANGE,
		"--memory: %s is too small for %s: at least %s, as a context alone takes %s", given,
		spec->name, needed, context);
}

static int fail_model(const char *name, struct td_err *err)
{
	char names[128] = "";

	for (unsigned i = 0; td_gpu_spec_at(i); i++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
			td_gpu_spec_at(i)->name);
	}
	return td_err_set(
		err, -EINVAL, "--model: \"%.64s\" is not a model: expected one of %s", name, names);
}

/* Adds the name of the option to the error of its value. */
static int name_option(const char *option, int r, struct td_err *err)
{
	struct td_err why = *err;

	return r ? td_err_set(err, r, "%s: %.400s", option, why.msg) : 0;
}

static int parse_start(int argc, char **argv, struct start *start, struct td_err *err)
{
	static const struct option options[] = {{"gpus", required_argument, NULL, 'g'},
		{"model", required_argument, NULL, 'm'}, {"memory", required_argument, NULL, 'b'},
		{"set", required_argument, NULL, 's'}, {"dir", required_argument, NULL, 'd'},
		{"foreground", no_argument, NULL, 'f'}, {"no-host-vmm", no_argument, NULL, 'v'},
		{"ipc-frees", no_argument, NULL, 'p'}, {"mig", no_argument, NULL, 'i'},
		{NULL, 0, NULL, 0}};
	const struct td_gpu_spec *spec;
	int c, r = 0;

	opterr = 0;
	while (!r && (c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		r = td_check_optarg(argv, err);
		if (r)
			return r;
		switch (c) {
		case 'g':
			r = name_option("--gpus",
				td_parse_u64(optarg, 1, SG_GPU_MAX, &start->gpus, err), err);
			break;
		case 'm':
			spec = td_gpu_spec_find(optarg);
			if (!spec)
				return fail_model(optarg, err);
			start->spec = *spec;
			break;
		case 'b':
			r = name_option("--memory",
				td_parse_size(optarg, 0, &start->memory_bytes, err), err);
			start->has_memory = true;
			break;
		case 's': r = set_field(&start->spec, optarg, err); break;
		case 'd': snprintf(start->dir, sizeof(start->dir), "%s", optarg); break;
		case 'v': start->features &= ~SG_FEATURE_HOST_VMM; break;
		case 'p': start->features &= ~SG_FEATURE_IPC_KEEPS; break;
		case 'i': start->features |= SG_FEATURE_MIG; break;
		case 'f': start->foreground = true; break;
		default: return td_refuse_option(c, argv, options, "softgpu start --help", err);
		}
	}
	if (!r && optind < argc)
		return td_err_set(err, -EINVAL,
			"\"%.64s\" is not expected: see softgpu start --help", argv[optind]);
	if (!r && start->has_memory)
		start->spec.memory_bytes = start->memory_bytes;
	return r ? r : check_memory(&start->spec, err);
}

/*
 * Starts the server in the background. Returns SG_STARTED if it accepts connections; otherwise text
 * has the reason.
 */
static enum sg_start launch_server(const struct start *start, char *text, size_t len)
{
	char said[PATH_MAX + 128];
	int ready[2], null;
	ssize_t n;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0) {
		snprintf(text, len, "pipe: %s", strerror(errno));
		return SG_FAILED;
	}
	pid = fork();
	if (pid < 0) {
		snprintf(text, len, "fork: %s", strerror(errno));
		close(ready[0]);
		close(ready[1]);
		return SG_FAILED;
	}
	if (pid == 0) {
		close(ready[0]);
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		_exit(sg_serve(start->dir, &start->spec, (uint32_t)start->gpus, start->features,
			ready[1]));
	}
	close(ready[1]);
	waitpid(pid, NULL, 0);
	n = read(ready[0], said, sizeof(said) - 1);
	close(ready[0]);
	if (n <= 0) {
		snprintf(text, len, "the server did not start");
		return SG_FAILED;
	}
	said[n] = 0;
	snprintf(text, len, "%s", said + 1);
	return (enum sg_start)said[0];
}

/* Returns when the server accepts connections, or after printing why it does not. */
static int start_server(const struct start *start)
{
	char text[PATH_MAX + 128];

	if (start->foreground)
		return sg_serve(
			start->dir, &start->spec, (uint32_t)start->gpus, start->features, -1);
	return launch_server(start, text, sizeof(text)) != SG_STARTED ? fail("%s", text), 1 : 0;
}

static void default_start(struct start *start)
{
	memset(start, 0, sizeof(*start));
	start->spec = *td_gpu_spec_find("tiny");
	start->gpus = 1;
	start->features = SG_FEATURE_HOST_VMM | SG_FEATURE_IPC_KEEPS;
	if (!sg_dir(start->dir, sizeof(start->dir)))
		start->dir[0] = 0;
}

static int verb_start(int argc, char **argv)
{
	struct start start;
	struct td_err err = {0};

	default_start(&start);
	if (parse_start(argc, argv, &start, &err))
		return fail("%s", err.msg);
	return start_server(&start);
}

/* Finds the folder of this project's libcuda.so.1: $SOFTGPU_LIB, or beside the program. */
static int find_libraries(char *buf, size_t len)
{
	const char *given = getenv("SOFTGPU_LIB");
	static const char *const candidates[] = {
		"../lib/softgpu", "../" TD_LIBDIR "/softgpu", "../driver", NULL};
	char self[PATH_MAX], joined[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (given && *given)
		return snprintf(buf, len, "%s", given) < (int)len ? 0 : -ENAMETOOLONG;
	if (n < 0)
		return -errno;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	for (const char *const *c = candidates; *c; c++) {
		snprintf(joined, sizeof(joined), "%s/%s/libcuda.so.1", self, *c);
		if (access(joined, R_OK) == 0)
			return snprintf(buf, len, "%s/%s", self, *c) < (int)len ? 0 : -ENAMETOOLONG;
	}
	return -ENOENT;
}

/*
 * Adds the library's folder in a build tree if the library is not beside the driver. An
 * installation has all libraries in one folder.
 */
static void add_library(
	char *buf, size_t len, const char *cuda, const char *folder, const char *name)
{
	char probe[3 * PATH_MAX];
	size_t used = strlen(buf);

	snprintf(probe, sizeof(probe), "%s/%s", cuda, name);
	if (access(probe, R_OK) == 0)
		return;
	snprintf(probe, sizeof(probe), "%s/../%s/%s", cuda, folder, name);
	if (access(probe, R_OK) == 0)
		snprintf(buf + used, len - used, ":%s/../%s", cuda, folder);
}

int sg_cli_library(char *buf, size_t len, const char *name, const char *folder)
{
	char cuda[2 * PATH_MAX];

	if (find_libraries(cuda, sizeof(cuda)))
		return fail("%s was not found beside softgpu: set SOFTGPU_LIB", name);
	snprintf(buf, len, "%s/%s", cuda, name);
	if (access(buf, R_OK))
		snprintf(buf, len, "%s/../%s/%s", cuda, folder, name);
	return 0;
}

/* Writes the folders of the libraries that replace NVIDIA's, which go before LD_LIBRARY_PATH. */
static int library_path(char *buf, size_t len)
{
	char cuda[2 * PATH_MAX];
	const char *others = getenv("LD_LIBRARY_PATH");
	size_t used;

	if (find_libraries(cuda, sizeof(cuda)))
		return fail("%s", "libcuda.so.1 was not found beside softgpu: set SOFTGPU_LIB");
	snprintf(buf, len, "%s", cuda);
	add_library(buf, len, cuda, "nvml", "libnvidia-ml.so.1");
	add_library(buf, len, cuda, "cudart", "libcudart.so.13");
	used = strlen(buf);
	if (others && *others &&
		snprintf(buf + used, len - used, ":%s", others) >= (int)(len - used))
		return fail("%s", "LD_LIBRARY_PATH is too long");
	return 0;
}

int sg_cli_check_value(int argc, char **argv, int i)
{
	if (i + 1 < argc && strcmp(argv[i + 1], "--"))
		return 0;
	return fail("\"%s\" needs a value: \"--\" is none, see softgpu --help", argv[i]);
}

/*
 * Takes --dir off the front. Returns the index of the first other argument, or -1 after an error
 * message.
 */
static int take_dir(int argc, char **argv, char *dir, size_t len)
{
	if (!sg_dir(dir, len))
		*dir = 0;
	if (argc < 2 || strcmp(argv[1], "--dir"))
		return 1;
	if (sg_cli_check_value(argc, argv, 1))
		return -1;
	snprintf(dir, len, "%s", argv[2]);
	return 3;
}

/* Puts the folder of the MPS programs first on the PATH: that of the driver, or one beside it. */
static void add_programs(void)
{
	char cuda[2 * PATH_MAX], probe[3 * PATH_MAX], path[16 * PATH_MAX];
	const char *others = getenv("PATH");

	if (find_libraries(cuda, sizeof(cuda)))
		return;
	snprintf(probe, sizeof(probe), "%s/nvidia-cuda-mps-control", cuda);
	if (access(probe, X_OK))
		snprintf(probe, sizeof(probe), "%s/../mps/nvidia-cuda-mps-control", cuda);
	if (access(probe, X_OK))
		return;
	*strrchr(probe, '/') = 0;
	if (snprintf(path, sizeof(path), "%s:%s", probe, others ? others : "") < (int)sizeof(path))
		setenv("PATH", path, 1);
}

/*
 * Finds a running server, or starts one with defaults. If several programs do so at once, one
 * starts it and the others wait.
 */
static int ensure_server(const char *dir)
{
	const struct timespec pause = {0, 20000000};
	char text[PATH_MAX + 128] = "";
	struct sg_client *client;
	enum sg_start outcome = SG_BUSY;
	struct start start;
	uint32_t gpus;

	default_start(&start);
	snprintf(start.dir, sizeof(start.dir), "%s", dir);
	for (int i = 0; outcome == SG_BUSY && i < START_TRIES; i++) {
		if (sg_client_new(dir, &client, &gpus) == 0) {
			sg_client_free(client);
			return 0;
		}
		outcome = launch_server(&start, text, sizeof(text));
		if (outcome == SG_STARTED)
			return 0;
		if (outcome == SG_BUSY)
			nanosleep(&pause, NULL);
	}
	fail("%s", text);
	return 1;
}

static int verb_run(int argc, char **argv)
{
	char path[16 * PATH_MAX], dir[PATH_MAX];
	int at = take_dir(argc, argv, dir, sizeof(dir)), error;

	if (at < 0)
		return EXIT_OURS;
	if (at < argc && !strcmp(argv[at], "--"))
		at++;
	if (at >= argc)
		return fail("%s", "run: which command? See softgpu run --help");
	if (argv[at][0] == '-')
		return fail("\"%s\" is not an option of run: see softgpu run --help", argv[at]);
	if (library_path(path, sizeof(path)))
		return EXIT_OURS;
	if (ensure_server(dir))
		return EXIT_OURS;
	setenv("LD_LIBRARY_PATH", path, 1);
	setenv("SOFTGPU_DIR", dir, 1);
	add_programs();
	execvp(argv[at], argv + at);
	error = errno;
	snprintf(path, sizeof(path), "%s: %s", argv[at], td_exec_reason(argv[at], error));
	fail("%s", path);
	return error == ENOENT ? 127 : 126;
}

/*
 * Sends one request. Returns 0, with the answer's text if it has one. After SG_STOP the server has
 * ended, so another may start at once.
 */
static int ask(const char *dir, uint32_t type, char *text, size_t len)
{
	struct sg_msg msg = {.type = type};
	struct sg_client *client;
	size_t got = 0;
	uint32_t gpus;
	int r;

	if (sg_client_new(dir, &client, &gpus) < 0) {
		fail("no server at %s: softgpu start", dir);
		return 1;
	}
	r = sg_client_request(client, &msg, text, len, &got);
	if (!r && !msg.error && type == SG_STOP)
		sg_client_await_end(client);
	sg_client_free(client);
	return r < 0 || msg.error ? fail("%s", "the server did not answer") : 0;
}

/*
 * Returns the number behind "key": in the JSON of one GPU. It relies on the format that the server
 * writes.
 */
static unsigned long long number(const char *json, const char *key)
{
	char quoted[64];
	const char *at;

	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	at = strstr(json, quoted);
	return at ? strtoull(at + strlen(quoted), NULL, 10) : 0;
}

static void print_status(char *text)
{
	char used[24], total[24], in[24], out[24];

	printf("%3s %-6s %10s %10s %9s %6s %10s %10s %9s %s\n", "GPU", "MODEL", "USED", "MEMORY",
		"PROCESSES", "BUSY", "IN", "OUT", "FAULTS", "LAGGED");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		const char *model = strstr(line, "\"model\": \"");
		unsigned long long elapsed = number(line, "elapsed_ns");

		if (!model)
			continue;
		printf("%3llu %-6.*s %10s %10s %9llu %5.1f%% %10s %10s %9llu %s\n",
			number(line, "index"), (int)strcspn(model + 10, "\""), model + 10,
			td_format_size(used, sizeof(used),
				number(line, "plain_bytes") +
					number(line, "managed_resident_bytes")),
			td_format_size(total, sizeof(total), number(line, "memory_bytes")),
			number(line, "processes"),
			elapsed ? 100.0 * (double)number(line, "busy_ns") / (double)elapsed : 0.0,
			td_format_size(in, sizeof(in),
				number(line, "copy_in_bytes") + number(line, "fault_in_bytes") +
					number(line, "prefetch_in_bytes")),
			td_format_size(out, sizeof(out),
				number(line, "copy_out_bytes") + number(line, "paged_out_bytes")),
			number(line, "faults"),
			strstr(line, "\"lagged\": true") ? "yes: figures are void" : "no");
	}
}

static int verb_ask(int argc, char **argv)
{
	static char text[SG_STATUS_MAX];
	char dir[PATH_MAX];
	bool json = false;
	int status;

	if (!sg_dir(dir, sizeof(dir)))
		dir[0] = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json") && !strcmp(argv[0], "status")) {
			json = true;
			continue;
		}
		if (strcmp(argv[i], "--dir"))
			return fail("\"%s\" is not expected: see softgpu --help", argv[i]);
		if (sg_cli_check_value(argc, argv, i))
			return EXIT_OURS;
		snprintf(dir, sizeof(dir), "%s", argv[++i]);
	}
	if (!strcmp(argv[0], "stop"))
		return ask(dir, SG_STOP, NULL, 0);
	if (!strcmp(argv[0], "reset-counters"))
		return ask(dir, SG_RESET_COUNTERS, NULL, 0);
	status = ask(dir, SG_STATUS, text, sizeof(text));
	if (status)
		return status;
	if (json)
		fputs(text, stdout);
	else
		print_status(text);
	return 0;
}

#define FIRST "usage: softgpu "
#define NEXT  "       softgpu "
#define MORE  "               "

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage, *help;
} verbs[] = {
	{"start", verb_start,
		"start [--gpus N] [--model M] [--memory SIZE] [--set KEY=VALUE]... [--dir D]\n" MORE
		"      [--no-host-vmm] [--ipc-frees] [--mig] [--foreground]\n",
		"Starts a GPU in software.\n\n"
		"--no-host-vmm: cuMemCreate refuses host memory, as some drivers may\n"
		"--ipc-frees: memory by IPC handle is off its GPU once its owner has freed it,\n"
		"  whoever has it open\n"
		"--mig: each GPU is divided by MIG into one part, which is all of it\n\n"
		"Fields for --set: link, faults, prefetch (bytes per second, such as 1.5g),\n"
		"  fault-latency, slice, switch, launch (times)\n"},
	{"run", verb_run, "run [--dir D] [--] COMMAND [ARG]...\n",
		"Runs a program on the GPU in software; if there is none, starts one first.\n"
		"MPS: softgpu run -- nvidia-cuda-mps-control -d\n"},
	{"status", verb_ask, "status [--json] [--dir D]\n",
		"Shows the memory and the counters of the GPUs.\n"},
	{"reset-counters", verb_ask, "reset-counters [--dir D]\n",
		"Sets the counters back to nothing.\n"},
	{"fault", sg_verb_fault, "fault [--dir D] [--gpu N] FAULT\n",
		"Makes something go wrong.\n\n"
		"Faults: xid N, ecc, lost, hang, link RATE, host-memory SIZE,\n"
		"  mps-early-exit hang|clean, call NAME[:N]=ERROR, clear\n"},
	{"smi", sg_verb_smi,
		"smi [-L | -q | --query-gpu=F,... | --query-compute-apps=F,...]\n" MORE
		"    [--format=csv[,noheader][,nounits]] [-i ID] [-l SECONDS]\n" NEXT
		"smi --help-query-gpu | --help-query-compute-apps\n",
		"Prints what nvidia-smi prints of NVIDIA's GPUs.\n"},
	{"stop", verb_ask, "stop [--dir D]\n", "Ends the GPU, and waits until it has ended.\n"},
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void print_models(FILE *out)
{
	fputs("\nModels:", out);
	for (unsigned i = 0; td_gpu_spec_at(i); i++)
		fprintf(out, " %s", td_gpu_spec_at(i)->name);
	fputc('\n', out);
}

static void usage(FILE *out)
{
	for (size_t i = 0; i < VERBS; i++)
		fprintf(out, "%s%s", i ? NEXT : FIRST, verbs[i].usage);
	fputs("\nA GPU in software: programs on the CUDA driver API run without one. Its figures\n"
	      "are a model's, not a GPU's. What a verb takes: softgpu VERB --help.\n",
		out);
	print_models(out);
}

static int help_of(const struct verb *verb)
{
	printf("%s%s\n%s", FIRST, verb->usage, verb->help);
	if (verb->run == verb_start)
		print_models(stdout);
	return 0;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < VERBS; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	fail("\"%s\" is not a verb: expected one such as start, run or status: see softgpu --help",
		name);
	return NULL;
}

static int dispatch(int argc, char **argv)
{
	const struct verb *verb;
	bool asks_help;

	if (argc < 2) {
		usage(stderr);
		return EXIT_OURS;
	}
	if (td_asks_version(argv[1]) || !strcmp(argv[1], "version")) {
		puts("softgpu " TANDEM_VERSION);
		return 0;
	}
	asks_help = td_asks_help(argv[1]) || !strcmp(argv[1], "help");
	if (asks_help && argc == 2) {
		usage(stdout);
		return 0;
	}
	verb = find_verb(argv[asks_help ? 2 : 1]);
	if (!verb)
		return EXIT_OURS;
	if (asks_help || (argc > 2 && td_asks_help(argv[2])))
		return help_of(verb);
	return verb->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	return td_output_end("softgpu", dispatch(argc, argv), EXIT_OURS);
}
