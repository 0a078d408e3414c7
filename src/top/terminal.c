/* `tandem top` in a terminal: curses, keys, and the verbs that keys stand for. */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "top/top.h"
#include "proto/socket.h"

#define RETRY_MS 1000
#define ESCAPE   27
#define SURE_NS  (4 * TD_NS_PER_S)

/* -- other verbs of tandem, run as commands -- */

/*
 * Runs `tandem VERB JOB` and writes its output into buf. The verb answers or gives up within 2 s.
 */
static void run_verb(const char *verb, const char *job, char *buf, size_t len)
{
	static const char *const candidates[] = {"tandem", "../cli/tandem", NULL};
	char path[PATH_MAX];
	size_t have = 0;
	int fds[2];
	pid_t pid;

	*buf = 0;
	if (!td_program_beside(path, sizeof(path), candidates) || pipe2(fds, O_CLOEXEC) < 0) {
		snprintf(buf, len, "tandem %s cannot be run: %s", verb, strerror(errno));
		return;
	}
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execl(path, "tandem", verb, job, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	while (pid > 0 && have < len - 1) {
		ssize_t n = read(fds[0], buf + have, len - 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	buf[have] = 0;
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/*
 * Starts the verb as a detached process: it waits until the job has ended, and top does not wait.
 */
static bool begin_verb(const char *verb, const char *job)
{
	static const char *const candidates[] = {"tandem", "../cli/tandem", NULL};
	char path[PATH_MAX];
	int null_fd;
	pid_t pid;

	if (!td_program_beside(path, sizeof(path), candidates))
		return false;
	pid = fork();
	if (!pid) {
		null_fd = open("/dev/null", O_RDWR);
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			dup2(null_fd, fd);
		if (setsid() >= 0 && !fork())
			execl(path, "tandem", verb, job, (char *)NULL);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid > 0;
}

/* -- the terminal -- */

static const struct {
	short colour;
	attr_t attributes;
} looks[TD_STYLE_N] = {
	[TD_STYLE_PLAIN] = {-1, A_NORMAL},
	[TD_STYLE_DIM] = {-1, A_DIM},
	[TD_STYLE_BOLD] = {-1, A_BOLD},
	[TD_STYLE_TITLE] = {-1, A_REVERSE},
	[TD_STYLE_SELECTED] = {-1, A_REVERSE | A_BOLD},
	/* People who cannot tell green from red can tell blue, yellow and red. */
	[TD_STYLE_RUNS] = {COLOR_CYAN, A_NORMAL},
	[TD_STYLE_WAITS] = {COLOR_YELLOW, A_NORMAL},
	[TD_STYLE_BAD] = {COLOR_RED, A_BOLD},
	[TD_STYLE_KEY] = {COLOR_CYAN, A_BOLD},
};

static void begin_terminal(void)
{
	initscr();
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	mouseinterval(0);
	timeout(0);
	if (!has_colors())
		return;
	start_color();
	use_default_colors();
	for (short i = 0; i < TD_STYLE_N; i++)
		if (looks[i].colour >= 0)
			init_pair((short)(i + 1), looks[i].colour, -1);
}

static attr_t look_of(uint8_t style)
{
	attr_t look = looks[style].attributes;

	if (looks[style].colour >= 0 && has_colors())
		look |= (attr_t)COLOR_PAIR(style + 1);
	return look;
}

static void paint(struct td_top *top)
{
	int rows, columns;

	getmaxyx(stdscr, rows, columns);
	if (!top->canvas.cells || top->canvas.rows != (unsigned)rows ||
		top->canvas.columns != (unsigned)columns) {
		td_canvas_deinit(&top->canvas);
		if (td_canvas_init(&top->canvas, (unsigned)rows, (unsigned)columns, top->ascii)) {
			top->ends = true;
			return;
		}
	}
	td_top_draw(top);
	for (unsigned row = 0; row < top->canvas.rows; row++)
		for (unsigned i = 0; i < top->canvas.columns; i++) {
			const struct td_canvas_cell *cell =
				&top->canvas.cells[row * top->canvas.columns + i];

			attrset(look_of(cell->style));
			mvaddstr((int)row, (int)i, cell->text);
		}
	refresh();
}

/* -- keys -- */

static const char help_text[] =
	"Up, Down, Page Up, Page Down, j, k   move the cursor; a click selects, too\n"
	"s, S      sort by the next, the previous column; or click on a title\n"
	"r         reverse the order\n"
	"/         show only jobs whose id, name, class, state or pid contains a text\n"
	"e, Enter  explain why the job runs or waits\n"
	"p         pause the job, or let it go on\n"
	"x, R      end the job, start it again (tandem evict, restart): press it twice\n"
	"+, -      look more often, less often\n"
	"q         quit\n"
	"\n"
	"TIME is the share of the time in which the job might use the GPU; DEVICE and\n"
	"HOST are where its memory lies. `tandem top --help` names all columns.\n";

static void show_detail(struct td_top *top, const char *text)
{
	if (text != top->detail)
		snprintf(top->detail, sizeof(top->detail), "%s", text);
	top->screen.detail = top->detail;
}

static const char *selected_job(struct td_top *top, char *buf, size_t len)
{
	const struct td_snapshot_job *job = td_screen_selected(&top->screen, &top->shown);

	if (!job)
		return NULL;
	snprintf(buf, len, "%u", job->said.pid);
	return buf;
}

static void explain(struct td_top *top)
{
	char pid[16];

	if (!selected_job(top, pid, sizeof(pid)))
		return;
	run_verb("explain", pid, top->detail, sizeof(top->detail));
	show_detail(top, top->detail);
}

/* Asks for the next round at once. */
static void look_again(struct td_top *top)
{
	struct td_msg watch = {.type = TD_MSG_TYPE_watch, .watch.period_ns = top->period_ns};

	if (top->fd >= 0 && td_socket_send(top->fd, &watch, NULL, 0))
		td_top_hang_up(top);
}

static void pause_or_resume(struct td_top *top)
{
	const struct td_snapshot_job *job = td_screen_selected(&top->screen, &top->shown);
	char pid[16], said[256], text[512];
	const char *verb;

	if (!job || !selected_job(top, pid, sizeof(pid)))
		return;
	verb = strcmp(job->said.state, "paused") ? "pause" : "resume";
	snprintf(text, sizeof(text), "%s: %.100s (%s)",
		!strcmp(verb, "pause") ? "paused" : "goes on",
		*job->said.name ? job->said.name : job->said.job, pid);
	run_verb(verb, pid, said, sizeof(said));
	look_again(top);
	td_top_say(top, 3 * TD_NS_PER_S, *said ? said : text);
}

/* Ends a job when the key is pressed a second time on the same job. */
static void end_job(struct td_top *top, int key, const char *verb)
{
	const struct td_snapshot_job *job = td_screen_selected(&top->screen, &top->shown);
	uint64_t now_ns = td_time_now_ns();
	char pid[16], text[256];
	const char *name;

	if (!job || !selected_job(top, pid, sizeof(pid)))
		return;
	name = *job->said.name ? job->said.name : job->said.job;
	if (top->sure_key != key || top->sure_pid != job->said.pid || now_ns > top->sure_until_ns) {
		top->sure_key = key;
		top->sure_pid = job->said.pid;
		top->sure_until_ns = now_ns + SURE_NS;
		snprintf(text, sizeof(text), "%c again: %s %.100s (%s)", key, verb, name, pid);
		td_top_say(top, SURE_NS, text);
		return;
	}
	top->sure_key = 0;
	snprintf(text, sizeof(text), "%s %s: %.100s (%s)", verb,
		begin_verb(verb, pid) ? "has been asked for" : "cannot be run", name, pid);
	td_top_say(top, 3 * TD_NS_PER_S, text);
}

static void sort_by(struct td_top *top, enum td_jobs_column key)
{
	/* A new column is sorted from A for names, and from the largest for amounts. */
	if (top->screen.key == key)
		top->screen.descending = !top->screen.descending;
	else
		top->screen.descending = key >= TD_JOBS_time;
	top->screen.key = key;
}

static void set_period(struct td_top *top, uint64_t period_ns)
{
	char took[32], text[64];

	if (period_ns < 100 * TD_NS_PER_MS || period_ns > 60 * TD_NS_PER_S)
		return;
	top->period_ns = period_ns;
	snprintf(text, sizeof(text), "a look every %s",
		td_format_duration(took, sizeof(took), period_ns));
	td_top_say(top, 2 * TD_NS_PER_S, text);
	look_again(top);
}

static void ask_filter(struct td_top *top)
{
	snprintf(top->note, sizeof(top->note), "show jobs that contain: %s_", top->screen.filter);
	top->screen.note = top->note;
	top->note_until_ns = 0;
	top->asks_filter = true;
}

static void type_filter(struct td_top *top, int key)
{
	size_t len = strlen(top->screen.filter);

	if (key == '\n' || key == KEY_ENTER || key == ESCAPE) {
		if (key == ESCAPE)
			*top->screen.filter = 0;
		top->asks_filter = false;
		top->screen.note = NULL;
		return;
	}
	if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && len)
		top->screen.filter[len - 1] = 0;
	else if (key >= ' ' && key < 127 && len + 1 < sizeof(top->screen.filter))
		snprintf(top->screen.filter + len, 2, "%c", key);
	ask_filter(top);
}

static void click(struct td_top *top)
{
	struct td_screen_spot spot;
	MEVENT event;

	if (getmouse(&event) != OK)
		return;
	if (event.bstate & BUTTON4_PRESSED) {
		td_screen_move(&top->screen, &top->shown, -3);
		return;
	}
	if (event.bstate & BUTTON5_PRESSED) {
		td_screen_move(&top->screen, &top->shown, 3);
		return;
	}
	spot = td_screen_spot(
		&top->screen, &top->shown, &top->canvas, (unsigned)event.y, (unsigned)event.x);
	if (spot.is_title && spot.key != TD_JOBS_N)
		sort_by(top, spot.key);
	if (spot.job) {
		top->screen.pid = spot.job->said.pid;
		top->screen.gpu = spot.job->said.gpu;
	}
}

static void press(struct td_top *top, int key)
{
	long page = top->canvas.rows / 2;

	if (top->asks_filter) {
		type_filter(top, key);
		return;
	}
	/* Any key removes the text over the table. q, Escape, Enter and h do nothing else then. */
	if (top->screen.detail) {
		top->screen.detail = NULL;
		if (key == 'q' || key == ESCAPE || key == '\n' || key == 'h')
			return;
	}
	switch (key) {
	case 'q': top->ends = true; break;
	case 'j':
	case KEY_DOWN: td_screen_move(&top->screen, &top->shown, 1); break;
	case 'k':
	case KEY_UP: td_screen_move(&top->screen, &top->shown, -1); break;
	case KEY_NPAGE: td_screen_move(&top->screen, &top->shown, page); break;
	case KEY_PPAGE: td_screen_move(&top->screen, &top->shown, -page); break;
	case KEY_HOME: td_screen_move(&top->screen, &top->shown, LONG_MIN / 2); break;
	case KEY_END: td_screen_move(&top->screen, &top->shown, LONG_MAX / 2); break;
	case 's': sort_by(top, td_screen_beside(&top->screen, &top->canvas, 1)); break;
	case 'S': sort_by(top, td_screen_beside(&top->screen, &top->canvas, -1)); break;
	case 'r': top->screen.descending = !top->screen.descending; break;
	case '/': ask_filter(top); break;
	case '\n':
	case KEY_ENTER:
	case 'e': explain(top); break;
	case 'p': pause_or_resume(top); break;
	case 'x': end_job(top, key, "evict"); break;
	case 'R': end_job(top, key, "restart"); break;
	case '+': set_period(top, top->period_ns / 2); break;
	case '-': set_period(top, top->period_ns * 2); break;
	case 'h':
	case '?': show_detail(top, help_text); break;
	case ESCAPE: *top->screen.filter = 0; break;
	case KEY_MOUSE: click(top); break;
	default: break;
	}
}

int td_top_run_terminal(struct td_top *top)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return td_top_fail("this is no terminal: --batch prints to a file or a pipe");
	top->screen.has_cursor = true;
	begin_terminal();
	td_top_call(top);
	while (!top->ends) {
		struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {top->fd, POLLIN, 0}};
		int key;

		if (top->note_until_ns && td_time_now_ns() >= top->note_until_ns) {
			top->screen.note = NULL;
			top->note_until_ns = 0;
		}
		paint(top);
		(void)poll(fds, 2, RETRY_MS);
		if (fds[0].revents & (POLLHUP | POLLERR))
			break;
		while ((key = getch()) != ERR)
			press(top, key);
		if (top->fd >= 0)
			(void)td_top_listen(top);
		else
			td_top_call(top);
	}
	endwin();
	return 0;
}
