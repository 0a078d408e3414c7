/*
 * tandem run: starts a daemon for this user if there is none, sets the environment of libtandem.so,
 * and becomes the program. So the exit status is the program's own; 125 is tandem's, 126 and 127
 * mean that the program could not be executed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/mps.h"
#include "cli/supervise/supervise.h"
#include "proto/words.h"
#include "view/options.h"

/*
 * How long to wait for a new daemon. It normally serves within milliseconds, but a slow disk or a
 * busy machine may delay it.
 */
#define START_NS (10 * TD_NS_PER_S)

/*
 * Waits until fd is readable or its other end is closed. Returns false if neither happened in time.
 */
static bool is_readable_by(int fd, uint64_t deadline_ns)
{
	struct pollfd poll_fd = {fd, POLLIN, 0};
	int r;

	do {
		uint64_t now_ns = td_time_now_ns();

		r = poll(&poll_fd, 1,
			now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / TD_NS_PER_MS) + 1
					     : 0);
	} while (r < 0 && errno == EINTR);
	return r != 0;
}

/*
 * Reads what a daemon that was just started reports (tandemd --ready-fd): why it cannot serve, or
 * nothing. Returns false if it neither served nor ended in time.
 */
static bool hear(int fd, char *ret_why, size_t len)
{
	uint64_t deadline_ns = td_time_now_ns() + START_NS;
	bool in_time = true;
	size_t used = 0;
	ssize_t n = 1;

	while (used + 1 < len && n && (in_time = is_readable_by(fd, deadline_ns))) {
		n = read(fd, ret_why + used, len - 1 - used);
		if (n < 0 && errno != EINTR)
			break;
		used += n > 0 ? (size_t)n : 0;
	}
	ret_why[used] = 0;
	if (!strcmp(ret_why, "1"))
		*ret_why = 0;
	(void)td_printable(ret_why);
	return in_time;
}

/*
 * Starts tandemd in its own session. Returns once it accepts connections, or has failed with a
 * reason. Several processes may do this at once: the daemon's lock lets one daemon live, and the
 * failure of the others does not matter if a daemon answers in the end. Returns 0, an exit status
 * after printing an error, or TD_CLI_NO_DAEMON after saying that no daemon answers.
 */
static int start_daemon(const char *socket_path, char *ret_why, size_t len)
{
	static const char *const candidates[] = {"tandemd", "../daemon/tandemd", NULL};
	char program[PATH_MAX], fd_text[16];
	int ready[2], status;
	bool in_time;
	pid_t pid;

	if (!td_cli_find(program, sizeof(program), "TANDEMD", candidates))
		return td_cli_fail("tandemd was not found beside tandem: set TANDEMD");
	if (pipe2(ready, 0) < 0)
		return td_cli_fail("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return td_cli_fail("fork: %s", strerror(errno));
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		char log[PATH_MAX];
		int log_fd;

		close(ready[0]);
		/* A second fork makes the daemon no child of the program. */
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		snprintf(log, sizeof(log), "%s.log", socket_path);
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
		dup2(null, 0);
		dup2(null, 1);
		dup2(log_fd < 0 ? null : log_fd, 2);
		if (chdir("/") < 0)
			_exit(1);
		snprintf(fd_text, sizeof(fd_text), "%d", ready[1]);
		unsetenv("LD_PRELOAD");
		execl(program, "tandemd", "--socket", socket_path, "--ready-fd", fd_text,
			(char *)NULL);
		dprintf(ready[1], "%s: %s", program, strerror(errno));
		_exit(127);
	}
	close(ready[1]);
	waitpid(pid, &status, 0);
	in_time = hear(ready[0], ret_why, len);
	close(ready[0]);
	if (in_time)
		return 0;
	td_cli_fail("the daemon that was started at %s has not come up in %d s: see %s.log; until "
		    "then the program runs without it",
		socket_path, (int)(START_NS / TD_NS_PER_S), socket_path);
	return TD_CLI_NO_DAEMON;
}

/*
 * Returns 0 if a daemon answers at path; TD_CLI_NO_DAEMON or an exit status after printing why not;
 * -errno if there is none or it has just ended.
 */
static int look_for_daemon(const char *path)
{
	int fd = td_cli_connect(path), r = fd < 0 ? fd : td_cli_probe(fd);

	if (td_cli_is_mute(r))
		return td_cli_say_no_daemon(path, fd, r);
	if (fd >= 0)
		close(fd);
	return r;
}

/* The next step of a user who has chosen no place for the socket: /run/tandem is of root. */
static const char *where_else(void)
{
	const char *path = getenv("TANDEM_SOCKET"), *dir = getenv("XDG_RUNTIME_DIR");

	return !geteuid() || (path && *path) || (dir && *dir)
		       ? ""
		       : ": set XDG_RUNTIME_DIR, or TANDEM_SOCKET to a path where this user may "
			 "write";
}

int td_cli_ensure_daemon(void)
{
	char path[256], log[sizeof(path) + 8], why[256] = "";
	int r = 0, status;

	if (td_cli_socket(path, sizeof(path)))
		return TD_EXIT_USAGE;
	for (int attempt = 0; attempt < 50; attempt++) {
		struct timespec pause = {0, 20 * 1000 * 1000};

		r = look_for_daemon(path);
		if (r >= 0)
			return r;
		if (r == -EACCES)
			break;
		if (attempt % 10 == 0 && (status = start_daemon(path, why, sizeof(why))))
			return status;
		/* The daemon of another `tandem run` holds the lock and will listen in a moment. */
		if (attempt)
			nanosleep(&pause, NULL);
	}
	/* A daemon is there but refuses the connection; it probably has too many. */
	if (r == -ECONNRESET || r == -EPIPE)
		return td_cli_say_no_daemon(path, -1, r);
	if (*why)
		return td_cli_fail(
			"no daemon could be started at \"%s\": %s%s", path, why, where_else());
	if (snprintf(log, sizeof(log), "%s.log", path) < (int)sizeof(log) && !access(log, R_OK))
		return td_cli_fail(
			"no daemon could be started at %s (%s): see %s", path, strerror(-r), log);
	return td_cli_fail("no daemon could be started at %s (%s): the folder cannot be made or "
			   "written by this user: set XDG_RUNTIME_DIR or TANDEM_SOCKET",
		path, strerror(-r));
}

struct job {
	const char *name, *class, *upgrade, *weight, *backend, *mem, *mem_soft, *duty, *slack, *gpu;
	const char *layers; /* NULL, or layer_counts */
	char layer_counts[TD_LAYERS_TEXT];
	struct td_restart restart;
	bool requeues, shadows, is_verbose;
	bool has_metrics;
	struct td_scraper scraper; /* of its metrics */
	uint64_t objective_ns;
};

/*
 * Refuses variables that the program would inherit and ignore silently: an invalid limit would be
 * no limit. A variable that an option replaces is not refused.
 */
static bool refuse(void *arg, const char *name, const struct td_err *err)
{
	const struct job *job = arg;
	const struct {
		const char *name, *instead;
	} replaced[] = {{"TANDEM_MEM", job->mem}, {"NVIDIA_GPU_MEMORY_LIMIT", job->mem},
		{"TANDEM_MEM_SOFT", job->mem_soft}, {"TANDEM_DUTY", job->duty},
		{"TANDEM_SLACK", job->slack}, {"TANDEM_CLASS", job->class},
		{"TANDEM_UPGRADE", job->upgrade}, {"TANDEM_WEIGHT", job->weight},
		{"TANDEM_BACKEND", job->backend}, {"TANDEM_LAYERS", job->layers}};

	for (size_t i = 0; i < sizeof(replaced) / sizeof(*replaced); i++)
		if (replaced[i].instead && !strcmp(replaced[i].name, name))
			return true;
	td_cli_fail("%s: %s", name, err->msg);
	return false;
}

static void help(void)
{
	puts("usage: tandem run [OPTION]... [--] COMMAND [ARG]...\n\n"
	     "  --name NAME                             shown by tandem ps (the program's name)\n"
	     "  --class online|guaranteed|besteffort    (besteffort)\n"
	     "  --upgrade guaranteed|online             besteffort, and that as soon as its user's "
	     "quota has room\n"
	     "  --weight N                              share among equals, 1 to 1000 (1)\n"
	     "  --backend auto|plain|swap|managed       plain: its memory stays on the GPU; swap: "
	     "it can leave the GPU, so that programs\n"
	     "                                          that do not fit together take turns; "
	     "managed: the same by unified memory;\n"
	     "                                          auto: swap, where its GPUs can do that and "
	     "it has no device open that gives GPU\n"
	     "                                          memory to other hardware, such as "
	     "/dev/gdrdrv; else plain (auto)\n"
	     "  --mem SIZE|SHARE                        the most that all its processes together "
	     "may "
	     "have on a GPU: 8Gi, 40% (none)\n"
	     "  --mem-soft SIZE|SHARE                   the most of that on the GPU itself: the "
	     "rest "
	     "lies on the host, within\n"
	     "                                          the GPU's reach (none; needs --backend "
	     "swap, "
	     "and chooses it)\n"
	     "  --duty SHARE                            the most of a GPU's time that each of its "
	     "processes may take: 30% (none)\n"
	     "  --slack SHARE                           guaranteed: by which its steps may take "
	     "longer than alone: 1% (5%)\n"
	     "  --layers FILE|COUNTS                    the network that it trains: an ONNX "
	     "file, or the counts that\n"
	     "                                          tandem layers prints (none)\n"
	     "  --gpu any[:N]|first|INDEX|UUID[,...]    the GPUs that the job may see: those "
	     "named, or N of CUDA_VISIBLE_DEVICES or all,\n"
	     "                                          by load, once it uses one; first: all, the "
	     "least loaded one first (all)\n"
	     "  --restart no|on-failure|always[:N[/TIME]]  start the program again when it ends, "
	     "at "
	     "most N times, or\n"
	     "                                          N times within any TIME: on-failure:5/10m "
	     "(no)\n"
	     "  --requeue                               start it again after it was evicted, once "
	     "the daemon admits it\n"
	     "  --shadow                                a service whose share of the SMs may "
	     "change: a second instance takes over\n"
	     "                                          when it is ready, and the first one gets "
	     "SIGTERM\n"
	     "  --metrics URL[,latency=NAME]            a service that does not use tandem.h: "
	     "where it counts its requests, as\n"
	     "                                          Prometheus reads them; NAME: its histogram "
	     "of latencies, unless it is\n"
	     "                                          vLLM, Triton, TensorFlow Serving, or has "
	     "http_request_duration_seconds\n"
	     "  --objective TIME                        with --metrics: the most that the P99 of "
	     "its latency shall be: 50ms (none)\n"
	     "  --verbose                               say that it starts again also where stderr "
	     "is no terminal\n\n"
	     "The exit status is the command's; 125: tandem failed, 126: not executable, 127: not "
	     "found.");
}

/*
 * Returns whether `limit` is less than `than`. Returns true if one is a size in bytes and the other
 * a percentage, which cannot be compared.
 */
static bool is_less(const char *limit, const char *than)
{
	uint64_t a, b;

	return !!strchr(limit, '%') != !!strchr(than, '%') ||
	       (!td_parse_size(limit, 1ull << 40, &a, NULL) &&
		       !td_parse_size(than, 1ull << 40, &b, NULL) && a < b);
}

/* Refuses options that would have no effect because of another option. */
static int check_together(const struct job *job)
{
	const char *upgrade = job->upgrade && strcmp(job->upgrade, "none") ? job->upgrade : NULL;

	if (job->mem_soft && job->backend && strcmp(job->backend, "swap"))
		return td_cli_fail("--mem-soft: memory under --backend \"%s\" need not be able to "
				   "move: expected --backend swap",
			job->backend);
	if (job->mem_soft && job->mem && !is_less(job->mem_soft, job->mem))
		return td_cli_fail("--mem-soft: \"%.31s\" has no effect: expected less than --mem "
				   "\"%.31s\"",
			job->mem_soft, job->mem);
	if (upgrade && strcmp(job->class, "besteffort"))
		return td_cli_fail("--upgrade: \"%s\" has no effect on a job that is %s from the "
				   "start: expected --class besteffort",
			upgrade, job->class);
	if (job->objective_ns && !job->has_metrics)
		return td_cli_fail(
			"--objective has no effect without --metrics: expected where the "
			"latency is counted");
	if (job->slack && strcmp(job->class, "guaranteed") &&
		(!upgrade || strcmp(upgrade, "guaranteed")))
		return td_cli_fail("--slack: \"%.31s\" has no effect on a job that is not "
				   "guaranteed: expected --class or --upgrade guaranteed",
			job->slack);
	return 0;
}

/* Returns the index of the command in argv; 0 after help was shown; -1 after printing an error. */
static int parse(int argc, char **argv, struct job *job)
{
	static const struct option options[] = {
#define OPTION_run TD_OPTION
#include "view/options_of.h"
	};
	struct td_err err = {0};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (td_check_optarg(argv, &err)) {
			td_cli_fail("%s, see tandem run --help", err.msg);
			return -1;
		}
		switch (c) {
		case 'n':
			if (!*optarg) {
				td_cli_fail("--name: \"\" is not valid: expected a name");
				return -1;
			}
			job->name = optarg;
			break;
		case 'c':
			if (td_cli_check("--class", optarg, td_cli_check_class))
				return -1;
			job->class = optarg;
			break;
		case 'u':
			if (td_cli_check("--upgrade", optarg, td_cli_check_upgrade))
				return -1;
			job->upgrade = optarg;
			break;
		case 'b':
			if (td_cli_check("--backend", optarg, td_cli_check_backend))
				return -1;
			job->backend = optarg;
			break;
		case 'w':
			if (td_cli_check("--weight", optarg, td_cli_check_weight))
				return -1;
			job->weight = optarg;
			break;
		case 'm':
			if (td_cli_check("--mem", optarg, td_cli_check_limit))
				return -1;
			job->mem = optarg;
			break;
		case 'o':
			if (td_cli_check("--mem-soft", optarg, td_cli_check_limit))
				return -1;
			job->mem_soft = optarg;
			break;
		case 'd':
			if (td_cli_check("--duty", optarg, td_cli_check_duty))
				return -1;
			job->duty = optarg;
			break;
		case 's':
			if (td_cli_check("--slack", optarg, td_cli_check_slack))
				return -1;
			job->slack = optarg;
			break;
		case 'l':
			if (td_cli_layers(optarg, job->layer_counts))
				return -1;
			job->layers = job->layer_counts;
			break;
		case 'r':
			if (td_restart_parse(optarg, &job->restart, &err)) {
				td_cli_fail("--restart: %s", err.msg);
				return -1;
			}
			break;
		case 'g': job->gpu = optarg; break;
		case 'M':
			if (td_scraper_init(&job->scraper, optarg, &err)) {
				td_cli_fail("--metrics: %s", err.msg);
				return -1;
			}
			job->has_metrics = true;
			break;
		case 'O':
			if (td_parse_duration(optarg, &job->objective_ns, &err)) {
				td_cli_fail("--objective: %s", err.msg);
				return -1;
			}
			break;
		case 'q': job->requeues = true; break;
		case 'a': job->shadows = true; break;
		case 'v': job->is_verbose = true; break;
		case 'h': help(); return 0;
		default:
			td_refuse_option(c, argv, options, "tandem run --help", &err);
			td_cli_fail("%s", err.msg);
			return -1;
		}
	}
	if (!td_cli_check_variables(refuse, job))
		return -1;
	job->class = job->class ? job->class : "besteffort";
	job->weight = job->weight ? job->weight : "1";
	if (check_together(job))
		return -1;
	if (!job->backend)
		job->backend = job->mem_soft ? "swap" : "auto";
	if (optind < argc)
		return optind;
	td_cli_fail("run: which command? See tandem run --help");
	return -1;
}

static uint8_t class_of(const struct job *job)
{
	if (!strcmp(job->class, "online"))
		return TD_CLASS_ONLINE;
	return strcmp(job->class, "guaranteed") ? TD_CLASS_BESTEFFORT : TD_CLASS_GUARANTEED;
}

static int set_environment(const struct job *job, const char *command)
{
	static const char *const candidates[] = {"../lib/libtandem.so", "../preload/libtandem.so",
		"../" TD_LIBDIR "/libtandem.so", NULL};
	const char *base = strrchr(command, '/'), *others = getenv("LD_PRELOAD");
	char library[PATH_MAX], preload[2 * PATH_MAX], id[64], why[PATH_MAX + 256];

	if (!td_cli_find(library, sizeof(library), "TANDEM_LIB", candidates))
		return td_cli_fail("libtandem.so was not found beside tandem: set TANDEM_LIB");
	/* The dynamic linker would only warn, and run the command without tandem. */
	if (*library != '/')
		return td_cli_fail("TANDEM_LIB: \"%s\" is not valid: expected a path that begins "
				   "with /, as programs change their folder",
			library);
	if (!td_cli_is_library(library, why, sizeof(why)))
		return td_cli_fail("TANDEM_LIB: %s", why);
	if (strpbrk(library, ": "))
		return td_cli_fail("\"%s\" cannot be preloaded: LD_PRELOAD ends a path at a blank "
				   "or a colon: set "
				   "TANDEM_LIB to a link without them",
			library);
	if (snprintf(preload, sizeof(preload), "%s%s%s", library, others && *others ? ":" : "",
		    others ? others : "") >= (int)sizeof(preload))
		return td_cli_fail("LD_PRELOAD is too long");
	/*
	 * The job's id is the pid and, since pids are reused, the time: short enough to type, and
	 * unique on a node.
	 */
	snprintf(id, sizeof(id), "%d.%lx", (int)getpid(), (unsigned long)time(NULL) & 0xfffff);
	setenv("LD_PRELOAD", preload, 1);
	setenv("TANDEM_JOB", id, 1);
	setenv("TANDEM_NAME", job->name ? job->name : base ? base + 1 : command, 1);
	setenv("TANDEM_CLASS", job->class, 1);
	setenv("TANDEM_WEIGHT", job->weight, 1);
	setenv("TANDEM_BACKEND", job->backend, 1);
	if (job->upgrade)
		setenv("TANDEM_UPGRADE", job->upgrade, 1);
	if (job->duty)
		setenv("TANDEM_DUTY", job->duty, 1);
	if (job->slack)
		setenv("TANDEM_SLACK", job->slack, 1);
	if (job->layers)
		setenv("TANDEM_LAYERS", job->layers, 1);
	if (job->mem_soft)
		setenv("TANDEM_MEM_SOFT", job->mem_soft, 1);
	if (job->mem)
		setenv("TANDEM_MEM", job->mem, 1);
	return 0;
}

static void warn(void *arg, const char *text)
{
	(void)arg;
	fprintf(stderr, "tandem: %s: without tandem on that GPU\n", text);
}

static void note_quota(const struct td_msg *msg, void *arg)
{
	if (msg->type == TD_MSG_TYPE_option && !strncmp(msg->option.key, "quota.", 6) &&
		strcmp(msg->option.value, "none"))
		*(bool *)arg = true;
}

/*
 * Asks whether the user's quota has room for the job. The question is sent only to a daemon that
 * has quotas.
 */
static int check_quota(const struct job *job)
{
	struct td_msg get = {.type = TD_MSG_TYPE_get}, msg = {.type = TD_MSG_TYPE_admit};
	bool has_quota = false;
	int status;

	if (!strcmp(job->class, "besteffort"))
		return 0;
	status = td_cli_ask_or_start(&get, note_quota, &has_quota);
	if (status || !has_quota)
		return status;
	msg.admit.class = class_of(job);
	snprintf(msg.admit.mem, sizeof(msg.admit.mem), "%s", job->mem ? job->mem : "");
	return td_cli_ask_or_start(&msg, NULL, NULL);
}

/*
 * Asks the daemon about the job, and starts a daemon if there is none. Returns 0 or an exit status;
 * TD_CLI_NO_DAEMON if there is no answer, which was printed, and the program shall run all the
 * same.
 */
static int consult(const struct job *job)
{
	int r = td_cli_ensure_daemon();

	if (!r)
		r = check_quota(job);
	if ((!r || r == TD_CLI_NO_DAEMON) && job->gpu) {
		int placed = td_cli_place(job->gpu, r == TD_CLI_NO_DAEMON);

		r = placed ? placed : r;
	}
	return r;
}

/* Stays as the parent of the program. The program's environment is set already. */
static int supervise(struct job *job, char *const *argv)
{
	struct td_supervise options = {.argv = argv,
		.restart = job->restart,
		.may_queue = job->requeues,
		.may_shadow = job->shadows,
		.is_verbose = job->is_verbose,
		.job = getenv("TANDEM_JOB"),
		.prepare = td_cli_set_mps};
	char path[256];

	if (td_cli_socket(path, sizeof(path)))
		return TD_EXIT_USAGE;
	if (job->has_metrics) {
		td_scraper_service(&job->scraper, getenv("TANDEM_NAME"), job->objective_ns);
		options.scraper = &job->scraper;
	}
	options.socket_path = path;
	options.admit.class = class_of(job);
	snprintf(options.admit.mem, sizeof(options.admit.mem), "%s", job->mem ? job->mem : "");
	return td_supervise(&options);
}

static int become(char *const *argv)
{
	int error;

	execvp(argv[0], argv);
	error = errno;
	td_cli_fail("%s: %s", argv[0], td_exec_reason(argv[0], error));
	return error == ENOENT ? 127 : 126;
}

int td_verb_run(int argc, char **argv)
{
	struct job job = {0};
	int at = parse(argc, argv, &job), r;

	if (at <= 0)
		return at ? TD_EXIT_USAGE : 0;
	r = consult(&job);
	if ((r && r != TD_CLI_NO_DAEMON) || set_environment(&job, argv[at]))
		return TD_EXIT_USAGE;
	if (!r)
		(void)td_cli_foreign_gpus(warn, NULL);
	if (job.restart.when != TD_RESTART_NEVER || job.requeues || job.shadows || job.has_metrics)
		return supervise(&job, argv + at);
	if (!r)
		td_cli_set_mps();
	return become(argv + at);
}
