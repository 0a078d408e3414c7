/*
 * The program tandem-top, which `tandem top` executes. It shows the node, its GPUs and its jobs,
 * live. The daemon sends all rows once in each period (WATCH), and view/screen.h draws them. This
 * folder has the terminal, the keys and the connection. It is a program of its own, so that `tandem
 * run` needs only libc.
 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "cli/rows.h"
#include "top/top.h"
#include "view/options.h"
#include "proto/socket.h"

#define EXIT_USAGE    125
#define PATIENCE_NS   (2 * TD_NS_PER_S)
#define BATCH_COLUMNS 120

int td_top_fail(const char *text)
{
	fprintf(stderr, "tandem top: %s\n", text);
	return EXIT_USAGE;
}

/* -- the connection -- */

void td_top_hang_up(struct td_top *top)
{
	if (top->fd >= 0)
		close(top->fd);
	top->fd = -1;
	top->has_round = false;
	td_snapshot_clear(&top->arriving);
	td_snapshot_clear(&top->shown);
	td_snapshot_clear(&top->before);
}

void td_top_say(struct td_top *top, uint64_t for_ns, const char *text)
{
	snprintf(top->note, sizeof(top->note), "%.599s", text);
	top->screen.note = top->note;
	top->note_until_ns = for_ns ? td_time_now_ns() + for_ns : 0;
}

void td_top_call(struct td_top *top)
{
	struct td_msg get = {.type = TD_MSG_TYPE_get}, watch = {.type = TD_MSG_TYPE_watch};
	char text[512];
	int fd = td_socket_connect(top->path, PATIENCE_NS), r;

	if (fd < 0) {
		snprintf(text, sizeof(text), "no daemon at %.200s (%s): `tandem run` starts one",
			top->path, strerror(-fd));
		td_top_say(top, 0, text);
		return;
	}
	strcpy(get.get.key, "policy");
	watch.watch.period_ns = top->period_ns;
	top->fd = fd;
	top->greets = true;
	r = td_socket_send(fd, &get, NULL, 0);
	r = r ? r : td_socket_send(fd, &watch, NULL, 0);
	if (r) {
		td_top_hang_up(top);
		return;
	}
	td_top_say(top, 0, "waiting for the daemon");
}

static void swap(struct td_snapshot *a, struct td_snapshot *b)
{
	struct td_snapshot kept = *a;

	*a = *b;
	*b = kept;
}

static void show_round(struct td_top *top)
{
	swap(&top->before, &top->shown);
	swap(&top->shown, &top->arriving);
	td_snapshot_clear(&top->arriving);
	/* If memory is short, the rows have no rates, and the curve gets no value. */
	(void)td_snapshot_rates(&top->shown, &top->before);
	(void)td_screen_note_gpus(&top->screen, &top->shown);
	if (!top->has_round)
		top->screen.note = NULL;
	top->has_round = true;
	top->seen++;
}

/*
 * Reads the messages that have come. Returns whether a round is complete or the connection has
 * ended.
 */
bool td_top_listen(struct td_top *top)
{
	struct td_msg msg;

	for (;;) {
		int r = td_socket_recv(top->fd, &msg, NULL, MSG_DONTWAIT);

		if (r == TD_PROTO_UNKNOWN)
			continue;
		if (r == -EAGAIN)
			return false;
		if (r) {
			td_top_hang_up(top);
			td_top_say(top, 0, "the daemon has ended: waiting for another one");
			return true;
		}
		td_proto_each_str(&msg, td_printable);
		if (msg.type == TD_MSG_TYPE_option)
			snprintf(top->screen.policy, sizeof(top->screen.policy), "%.*s",
				(int)sizeof(top->screen.policy) - 1, msg.option.value);
		if (msg.type == TD_MSG_TYPE_error) {
			td_top_hang_up(top);
			td_top_say(top, 0, msg.error.text);
			return true;
		}
		if (top->greets) {
			top->greets = msg.type != TD_MSG_TYPE_end;
			continue;
		}
		if (td_snapshot_take(&top->arriving, &msg) == 1) {
			show_round(top);
			return true;
		}
	}
}

/* -- output without a terminal: --batch and --json -- */

static void print_canvas(const struct td_canvas *canvas)
{
	char line[4 * TD_CANVAS_MAX + 1];

	for (unsigned i = 0; i < canvas->rows; i++)
		puts(td_canvas_line(canvas, i, line));
	td_output_flush();
}

void td_top_draw(struct td_top *top)
{
	time_t now = time(NULL);
	struct tm tm;

	strftime(top->screen.clock, sizeof(top->screen.clock), "%H:%M:%S", localtime_r(&now, &tm));
	td_screen_draw(&top->screen, top->has_round ? &top->shown : NULL, &top->canvas);
}

static int print_round(struct td_top *top)
{
	const char *columns = getenv("COLUMNS");
	unsigned rows = (unsigned)(4 + 2 * top->shown.gpu_count + top->shown.job_count +
				   top->shown.other_count),
		 width = columns && atoi(columns) > 0 ? (unsigned)atoi(columns) : BATCH_COLUMNS;

	if (top->json) {
		td_rows_print_json(&top->shown);
		return 0;
	}
	/* There must be room for two lines of each GPU, even if there are few jobs. */
	rows += top->shown.job_count < 8 ? 8 : 0;
	if (td_canvas_init(&top->canvas, rows, width, top->ascii))
		return td_top_fail("there is no memory");
	td_top_draw(top);
	for (rows = top->canvas.rows - 1; rows > 1; rows--) {
		char line[4 * TD_CANVAS_MAX + 1];

		if (*td_canvas_line(&top->canvas, rows - 1, line))
			break;
	}
	/* The line of keys and empty lines are not printed. */
	top->canvas.rows = rows;
	print_canvas(&top->canvas);
	td_canvas_deinit(&top->canvas);
	return 0;
}

/* Prints rounds. The first round has no rates, so it is printed only if no other is to follow. */
static int run_batch(struct td_top *top)
{
	td_top_call(top);
	if (top->fd < 0)
		return td_top_fail(top->note);
	while (!top->rounds || top->seen < top->rounds + 1) {
		struct pollfd fd = {top->fd, POLLIN, 0};

		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			return td_top_fail(strerror(errno));
		if (!td_top_listen(top))
			continue;
		if (top->fd < 0)
			return td_top_fail(top->note);
		if (top->seen < 2)
			continue;
		if (top->seen > 2 && !top->json)
			putchar('\n');
		if (print_round(top))
			return EXIT_USAGE;
		if (ferror(stdout))
			return EXIT_USAGE;
	}
	return 0;
}

/* -- options -- */

static void usage(FILE *out)
{
	fputs("usage: tandem top [OPTION]...\n\n"
	      "The GPUs and the jobs that share them, live. Press h for the keys.\n\n"
	      "  -d, --delay TIME   between two looks, such as 500ms (default: 1s)\n"
	      "  -s, --sort KEY     the column to sort by:",
		out);
	for (unsigned i = 0; i < TD_JOBS_N; i++)
		fprintf(out, "%s%s", i % 8 == 6 ? "\n                     " : " ",
			td_jobs_info((enum td_jobs_column)i)->id);
	fputs("\n"
	      "  -r, --reverse      the largest first\n"
	      "  -f, --filter TEXT  only jobs whose id, name, class, state or pid contains it\n"
	      "  -b, --batch        print to a file or a pipe, $COLUMNS wide (default: 120)\n"
	      "  -n, --rounds N     end after so many\n"
	      "      --json         each round as a JSON object; implies --batch\n"
	      "      --ascii        bars and curves of ASCII characters\n\n"
	      "Columns, as far as the terminal is wide enough:\n",
		out);
	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		const struct td_jobs_info *column = td_jobs_info((enum td_jobs_column)i);

		fprintf(out, "  %-9s %s\n", column->title, column->help);
	}
}

static int usage_error(const struct td_err *err)
{
	return td_top_fail(err->msg);
}

static int read_options(struct td_top *top, int argc, char **argv)
{
	static const struct option options[] = {
#define OPTION_top TD_OPTION
#include "view/options_of.h"
	};
	struct td_err err = {0};
	char text[256];
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":d:s:rf:bn:h", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			if (td_parse_duration(optarg, &top->period_ns, NULL) ||
				top->period_ns < 100 * TD_NS_PER_MS ||
				top->period_ns > 3600 * TD_NS_PER_S) {
				snprintf(text, sizeof(text),
					"--delay: \"%.64s\" is not valid: expected a time from "
					"100ms to 1h",
					optarg);
				return td_top_fail(text);
			}
			break;
		case 's':
			top->screen.key = td_jobs_find(optarg);
			if (top->screen.key == TD_JOBS_N) {
				snprintf(text, sizeof(text),
					"--sort: \"%.64s\" is not valid: expected a column of "
					"tandem top --help",
					optarg);
				return td_top_fail(text);
			}
			break;
		case 'r': top->screen.descending = true; break;
		case 'f':
			snprintf(top->screen.filter, sizeof(top->screen.filter), "%s", optarg);
			break;
		case 'b': top->batch = true; break;
		case 'n':
			if (td_parse_u64(optarg, 1, UINT32_MAX, &top->rounds, &err)) {
				snprintf(text, sizeof(text), "--rounds: %.200s", err.msg);
				return td_top_fail(text);
			}
			break;
		case 'J': top->json = top->batch = true; break;
		case 'A': top->ascii = true; break;
		case 'h': usage(stdout); return -1;
		default:
			(void)td_refuse_option(c, argv, options, "tandem top --help", &err);
			return usage_error(&err);
		}
	}
	if (optind < argc) {
		snprintf(text, sizeof(text), "\"%.64s\" is not expected: see tandem top --help",
			argv[optind]);
		return td_top_fail(text);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct td_top top;
	struct td_err err = {0};
	int r;

	setlocale(LC_ALL, "");
	top.fd = -1;
	top.period_ns = TD_NS_PER_S;
	top.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	if (gethostname(top.screen.host, sizeof(top.screen.host) - 1))
		strcpy(top.screen.host, "this node");
	r = read_options(&top, argc, argv);
	if (r)
		return td_output_end("tandem", r < 0 ? 0 : r, EXIT_USAGE);
	if (td_socket_path_typed(top.path, sizeof(top.path), &err))
		return usage_error(&err);
	(void)signal(SIGPIPE, SIG_IGN);
	r = top.batch ? run_batch(&top) : td_top_run_terminal(&top);
	td_top_hang_up(&top);
	td_snapshot_deinit(&top.arriving);
	td_snapshot_deinit(&top.shown);
	td_snapshot_deinit(&top.before);
	td_screen_deinit(&top.screen);
	td_canvas_deinit(&top.canvas);
	return td_output_end("tandem", r, EXIT_USAGE);
}
