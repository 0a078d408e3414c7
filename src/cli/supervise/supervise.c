/*
 * Carries out the actions of life.c, in one loop over signals, the program's start, and the daemon.
 *
 * Seen from outside, the supervisor behaves like its program: it ends and stops as the program
 * does, and passes on signals that were sent to it alone (relay.h). The program is in the same
 * process group and session, so terminals and shells work as usual. The supervisor keeps the
 * inherited descriptors open, since the next start needs them.
 */
#include "cli/supervise/supervise.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/parse.h"
#include "base/time.h"
#include "cli/supervise/child.h"
#include "cli/supervise/life.h"
#include "cli/supervise/link.h"
#include "cli/supervise/listens.h"
#include "cli/supervise/orders.h"
#include "cli/supervise/processes.h"
#include "cli/supervise/shadow.h"
#include "cli/supervise/signals.h"
#include "proto/words.h"

#define EXIT_OWN 125
/*
 * How often to look where a shadow listens. A look reads all of /proc, so with many processes it
 * has at most one part in LISTENS_SHARE of the time.
 */
#define LISTENS_NS    (20 * TD_NS_PER_MS)
#define LISTENS_SHARE 20

struct supervisor {
	const struct td_supervise *options;
	struct td_inherited inherited;
	struct td_signals signals;
	struct td_child child;
	struct td_life life;
	struct td_orders orders;
	struct td_shadow shadow;
	/*
	 * The other process of shadow.h: the shadow while it starts or is given up, or the first
	 * instance while it ends.
	 */
	struct td_child other;
	uint32_t instances; /* the number of instances started so far */
	/* The share of the SMs that an order gave the last instance; 0: no order did. */
	uint32_t sm_share_ppm;
	uint32_t wanted_ppm; /* the share in the order for the shadow */
	bool says_ready;     /* the program calls tandem_ready() */
	uint64_t look_ns;    /* when to look where the shadow listens */
	struct td_link link;
	bool does_talk;
	bool was_queued; /* the user was told that the job is queued */
};

/* -- messages to the user -- */

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(STDERR_FILENO, "tandem: %s\n", text);
}

/* Writes how the program ended, such as "exit status 3" or "signal 15 (Terminated)". */
static const char *describe(char *buf, size_t len, const struct td_life_end *end)
{
	if (end->by_signal)
		snprintf(buf, len, "signal %d (%s)", end->code, strsignal(end->code));
	else
		snprintf(buf, len, "exit status %d", end->code);
	return buf;
}

/*
 * Prints the change of state, if a person watches. In a file, the program's own output stays
 * unmixed.
 */
static void tell(struct supervisor *s, enum td_life_state before)
{
	const struct td_life *life = &s->life;
	const char *name = s->options->argv[0];
	char how[64], when[32];

	if (!s->does_talk || life->state == before)
		return;
	describe(how, sizeof(how), &life->end);
	if (life->state == TD_LIFE_CLEARING && before != TD_LIFE_STOPPING)
		complain("%s ended (%s): it starts again in %s", name, how,
			td_format_duration(when, sizeof(when), life->delay_ns));
	if (life->state == TD_LIFE_QUEUED && !s->was_queued)
		complain("%s was evicted and starts again when the daemon admits it", name);
	s->was_queued |= life->state == TD_LIFE_QUEUED;
	if (life->state == TD_LIFE_OVER && life->gave_up)
		complain("%s ended (%s): it is not started again, as --restart allows %u restarts",
			name, how, life->restart.most);
}

/* -- actions -- */

static void feed(struct supervisor *s, const struct td_life_input *input);

static int count_others(struct supervisor *s, int signal)
{
	const pid_t except[] = {s->child.pid, s->signals.witness.pid};

	return td_processes_signal(signal, except, 2);
}

static void signal_all(struct supervisor *s, int signal)
{
	if (s->child.pid) {
		kill(s->child.pid, signal);
		if (signal == SIGTERM)
			kill(s->child.pid, SIGCONT);
	}
	(void)count_others(s, signal);
}

static int start_instance(struct supervisor *s, struct td_child *child, uint32_t sm_share_ppm)
{
	const struct td_start how = {.restarts = s->life.starts - 1,
		.instance = s->options->may_shadow ? ++s->instances : 0,
		.sm_share_ppm = sm_share_ppm,
		.prepare = s->options->prepare};

	return td_child_start(child, s->options->argv, &how, &s->inherited);
}

static void start(struct supervisor *s)
{
	struct td_life_input input = {.event = TD_LIFE_UNSTARTED, .end = {false, EXIT_OWN}};
	int r = start_instance(s, &s->child, s->sm_share_ppm);

	if (!r) {
		td_witness_program(&s->signals.witness, s->child.pid);
		return;
	}
	complain("%s cannot be started: %s", s->options->argv[0], strerror(-r));
	feed(s, &input);
}

static void carry_out(struct supervisor *s, enum td_life_action action)
{
	switch (action) {
	case TD_LIFE_START: start(s); break;
	case TD_LIFE_TERMINATE: signal_all(s, SIGTERM); break;
	case TD_LIFE_KILL: signal_all(s, SIGKILL); break;
	case TD_LIFE_ASK: td_link_ask(&s->link, &s->options->admit, td_time_now_ns()); break;
	case TD_LIFE_NOTHING:
	case TD_LIFE_END:
	case TD_LIFE_ACTION_N: break;
	}
}

/* -- the second instance -- */

static void feed_shadow(struct supervisor *s, const struct td_shadow_input *input);
static void report(struct supervisor *s);

static void start_shadow(struct supervisor *s)
{
	struct td_shadow_input input = {.event = TD_SHADOW_ENDED};
	int r = start_instance(s, &s->other, s->wanted_ppm);

	s->look_ns = td_time_now_ns() + LISTENS_NS;
	if (!r)
		return;
	input.reason = strerror(-r);
	feed_shadow(s, &input);
}

/* The shadow becomes the child. Afterwards `other` is the first instance. */
static void exchange(struct supervisor *s)
{
	struct td_child first = s->child;

	s->child = s->other;
	s->other = first;
	s->sm_share_ppm = s->wanted_ppm;
	td_witness_program(&s->signals.witness, s->child.pid);
}

static void carry_out_shadow(struct supervisor *s, enum td_shadow_action action)
{
	switch (action) {
	case TD_SHADOW_START: start_shadow(s); break;
	case TD_SHADOW_HAND_OVER:
		exchange(s);
		/* The daemon hears of the exchange before the first instance is gone. */
		report(s);
		td_processes_signal_below(s->other.pid, SIGTERM);
		break;
	case TD_SHADOW_TAKE_OVER:
		exchange(s);
		td_child_forget(&s->other);
		break;
	case TD_SHADOW_TERMINATE: td_processes_signal_below(s->other.pid, SIGTERM); break;
	case TD_SHADOW_KILL: td_processes_signal_below(s->other.pid, SIGKILL); break;
	case TD_SHADOW_NOTHING:
	case TD_SHADOW_ACTION_N: break;
	}
}

/* Reports whether the shadow can answer requests, as it says or as its listening shows. */
static void look_whether_ready(struct supervisor *s)
{
	const struct td_shadow_input ready = {.event = TD_SHADOW_READY};
	uint64_t now_ns = td_time_now_ns(), took_ns;
	bool is_ready;

	s->says_ready |= td_child_is_ready(&s->child);
	if (s->shadow.state != TD_SHADOW_STARTING)
		return;
	is_ready = td_child_is_ready(&s->other);
	s->says_ready |= is_ready;
	if (!is_ready && !s->says_ready && now_ns >= s->look_ns) {
		is_ready = td_listens_as(s->child.pid, s->other.pid);
		took_ns = td_time_now_ns() - now_ns;
		s->look_ns = now_ns + td_max_u64(LISTENS_NS, LISTENS_SHARE * took_ns);
	}
	if (is_ready)
		feed_shadow(s, &ready);
}

static void cancel_shadow(struct supervisor *s, const char *why)
{
	const struct td_shadow_input input = {.event = TD_SHADOW_CANCELLED, .reason = why};

	/* The caller feeds `life` next. Before that, an order for it would count as carried out. */
	carry_out_shadow(s, td_shadow_step(&s->shadow, &input, td_time_now_ns()));
}

static void end_other(struct supervisor *s, const siginfo_t *info)
{
	const struct td_life_end end = {info->si_code != CLD_EXITED, info->si_status};
	struct td_shadow_input input = {.event = TD_SHADOW_ENDED};
	char how[64];

	td_child_forget(&s->other);
	input.reason = describe(how, sizeof(how), &end);
	feed_shadow(s, &input);
}

/*
 * Returns whether the shadow takes the place of the first instance, which has ended by itself. It
 * does not if the job is to end.
 */
static bool is_inherited(struct supervisor *s)
{
	const struct td_shadow_input input = {.event = TD_SHADOW_FIRST_ENDED};
	bool is_heir = s->shadow.state == TD_SHADOW_STARTING && s->life.state == TD_LIFE_RUNNING &&
		       !s->life.is_interrupted;

	if (is_heir)
		feed_shadow(s, &input);
	return is_heir;
}

/* Reports CLEARED when no process of the job is left, or if its processes cannot be listed. */
static void look_whether_cleared(struct supervisor *s)
{
	const struct td_life_input input = {.event = TD_LIFE_CLEARED};

	if (s->life.state == TD_LIFE_CLEARING && count_others(s, 0) <= 0)
		feed(s, &input);
}

static void report(struct supervisor *s)
{
	struct td_msg msg;

	td_link_say(&s->link, (uint32_t)s->child.pid, s->life.starts, s->orders.number,
		s->child.instance);
	if (td_orders_end(&s->orders, &s->life, &s->shadow, &msg))
		td_link_send(&s->link, &msg);
}

static void feed_shadow(struct supervisor *s, const struct td_shadow_input *input)
{
	carry_out_shadow(s, td_shadow_step(&s->shadow, input, td_time_now_ns()));
	report(s);
}

static void feed(struct supervisor *s, const struct td_life_input *input)
{
	enum td_life_state before = s->life.state;

	carry_out(s, td_life_step(&s->life, input, td_time_now_ns()));
	tell(s, before);
	report(s);
	look_whether_cleared(s);
}

/* -- events -- */

static void order_shadow(
	struct supervisor *s, const struct td_msg_order *msg, const struct td_life_input *order)
{
	const struct td_shadow_input input = {
		.event = TD_SHADOW_ORDERED, .ready_ns = order->leave_ns, .kill_ns = order->kill_ns};

	s->wanted_ppm = msg->sm_share_ppm <= TD_PPM ? msg->sm_share_ppm : 0;
	feed_shadow(s, &input);
}

static void hear_daemon(struct supervisor *s)
{
	struct td_msg msg, answers[TD_ORDERS_ANSWERS];
	struct td_life_input input;
	unsigned count;

	while (td_link_recv(&s->link, &msg, td_time_now_ns())) {
		enum td_orders_for who = td_orders_take(
			&s->orders, &msg.order, &s->life, &s->shadow, &input, answers, &count);

		for (unsigned i = 0; i < count; i++)
			td_link_send(&s->link, answers + i);
		if (who == TD_ORDERS_SHADOW)
			order_shadow(s, &msg.order, &input);
		if (who == TD_ORDERS_LIFE) {
			cancel_shadow(s, "the job is to end or to start again");
			feed(s, &input);
		}
	}
}

static void hear_admission(struct supervisor *s)
{
	const struct td_life_input input = {.event = TD_LIFE_ADMITTED};

	if (td_link_admission(&s->link, td_time_now_ns()) == TD_LINK_ADMITTED)
		feed(s, &input);
}

static void hear_start(struct supervisor *s)
{
	const struct td_life_input input = {.event = TD_LIFE_STARTED};

	if (td_child_is_executed(&s->child))
		feed(s, &input);
}

static void end_program(struct supervisor *s, const siginfo_t *info)
{
	bool is_executed = td_child_is_executed(&s->child);
	struct td_life_input input = {.event = is_executed ? TD_LIFE_ENDED : TD_LIFE_UNSTARTED,
		.end = {info->si_code != CLD_EXITED, info->si_status}};

	if (is_executed && is_inherited(s))
		return;
	td_child_forget(&s->child);
	/* An order that came before the program's end is the reason for that end. */
	hear_daemon(s);
	feed(s, &input);
}

/* Starts a new witness after the old one was killed. */
static void replace_witness(struct supervisor *s)
{
	close(s->signals.witness.fd);
	if (td_witness_start(&s->signals.witness))
		s->signals.witness.pid = 0;
	else if (s->child.pid > 0)
		td_witness_program(&s->signals.witness, s->child.pid);
}

static void change_child(struct supervisor *s, const siginfo_t *info)
{
	bool has_ended = info->si_code != CLD_STOPPED && info->si_code != CLD_CONTINUED;

	if (info->si_pid == s->child.pid && has_ended)
		end_program(s, info);
	else if (info->si_pid == s->other.pid && has_ended)
		end_other(s, info);
	else if (info->si_pid == s->child.pid && info->si_code == CLD_STOPPED &&
		 s->life.state != TD_LIFE_STOPPING)
		td_signals_stop(&s->signals, info->si_status, s->child.pid);
	else if (info->si_pid == s->signals.witness.pid && has_ended)
		replace_witness(s);
}

static void reap(struct supervisor *s)
{
	siginfo_t info = {0};

	while (!waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) && info.si_pid) {
		change_child(s, &info);
		info.si_pid = 0;
	}
	look_whether_cleared(s);
}

static void hear_signals(struct supervisor *s)
{
	struct td_life_input input = {.event = TD_LIFE_INTERRUPTED};
	struct td_signals_news news;

	td_signals_take(&s->signals, s->child.pid, td_time_now_ns(), &news);
	if (news.ending) {
		cancel_shadow(s, "the job is to end");
		input.end.code = news.ending;
		feed(s, &input);
	}
	if (news.has_child)
		reap(s);
	if (news.stopping && !s->child.pid && s->life.state != TD_LIFE_OVER)
		td_signals_stop(&s->signals, news.stopping, 0);
}

/* -- the loop -- */

static int until_ms(uint64_t wake_ns)
{
	uint64_t now_ns = td_time_now_ns(), ms;

	if (wake_ns == UINT64_MAX)
		return -1;
	if (wake_ns <= now_ns)
		return 0;
	ms = (wake_ns - now_ns + TD_NS_PER_MS - 1) / TD_NS_PER_MS;
	return ms < 1000 * 1000 ? (int)ms : 1000 * 1000;
}

/* While no program runs, something else may answer at the address. */
static bool reads_metrics(const struct supervisor *s)
{
	return s->options->scraper && s->life.state == TD_LIFE_RUNNING && s->child.pid;
}

static void read_metrics(struct supervisor *s)
{
	struct td_msg msg;

	if (!s->options->scraper)
		return;
	if (!reads_metrics(s))
		td_scraper_forget(s->options->scraper);
	else if (td_scraper_turn(s->options->scraper, td_time_now_ns(), &msg))
		td_link_send(&s->link, &msg);
}

static void wait_for_events(struct supervisor *s)
{
	/*
	 * The pipe is polled only while the shadow starts. Later nobody reads it, so poll() would
	 * report it for ever.
	 */
	bool starts = s->shadow.state == TD_SHADOW_STARTING;
	const struct td_scraper *reads = reads_metrics(s) ? s->options->scraper : NULL;
	struct pollfd fds[] = {{s->signals.fd, POLLIN, 0}, {s->child.started_fd, POLLIN, 0},
		{s->link.fd, POLLIN, 0}, {s->link.ask_fd, POLLIN, 0},
		{s->child.ready_fd, POLLIN, 0}, {starts ? s->other.ready_fd : -1, POLLIN, 0},
		{reads ? reads->fetch.fd : -1, reads ? reads->fetch.events : (short)0, 0}};
	uint64_t wake_ns = td_min_u64(s->life.wake_ns, td_relay_wake_ns(&s->signals.relay));

	wake_ns = td_min_u64(wake_ns, s->shadow.wake_ns);
	if (starts && !s->says_ready)
		wake_ns = td_min_u64(wake_ns, s->look_ns);
	wake_ns = td_min_u64(wake_ns, td_link_wake_ns(&s->link));
	if (reads)
		wake_ns = td_min_u64(wake_ns, td_scraper_wake_ns(reads));
	(void)poll(fds, sizeof(fds) / sizeof(*fds), until_ms(wake_ns));
	if (fds[1].revents)
		hear_start(s);
}

static void turn(struct supervisor *s)
{
	const struct td_life_input later = {.event = TD_LIFE_TIME};
	const struct td_shadow_input shadow_later = {.event = TD_SHADOW_TIME};

	td_link_tick(&s->link, td_time_now_ns());
	wait_for_events(s);
	hear_signals(s);
	hear_daemon(s);
	hear_admission(s);
	look_whether_ready(s);
	read_metrics(s);
	if (td_time_now_ns() >= s->life.wake_ns)
		feed(s, &later);
	if (td_time_now_ns() >= s->shadow.wake_ns)
		feed_shadow(s, &shadow_later);
	look_whether_cleared(s);
}

static int open_all(struct supervisor *s)
{
	const struct td_supervise *options = s->options;
	uint32_t can = TD_SUPERVISOR_RESTARTS | (options->may_queue ? TD_SUPERVISOR_REQUEUES : 0) |
		       (options->may_shadow ? TD_SUPERVISOR_SHADOWS : 0);
	int r;

	s->orders.may_shadow = options->may_shadow;
	s->child.started_fd = s->other.started_fd = -1;
	s->child.ready_fd = s->other.ready_fd = -1;
	td_link_init(&s->link, options->socket_path, options->job, can);
	td_inherited_take(&s->inherited);
	/*
	 * A process whose parent has ended becomes a child of this one, so processes of the job can
	 * be found.
	 */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	r = td_signals_init(&s->signals);
	return r;
}

int td_supervise(const struct td_supervise *options)
{
	struct supervisor s = {.options = options,
		.shadow = TD_SHADOW_INIT,
		.does_talk = options->is_verbose || isatty(STDERR_FILENO)};
	int r = open_all(&s);

	if (r) {
		complain("%s cannot be supervised: %s", options->argv[0], strerror(-r));
		return EXIT_OWN;
	}
	carry_out(&s, td_life_begin(&s.life, &options->restart, options->may_queue));
	report(&s);
	while (s.life.state != TD_LIFE_OVER)
		turn(&s);
	td_link_deinit(&s.link);
	td_signals_deinit(&s.signals);
	if (!s.life.end.by_signal)
		return s.life.end.code;
	td_signals_die(s.life.end.code);
	return 128 + s.life.end.code;
}
