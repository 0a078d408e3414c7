/* The agent against a daemon that the test plays: turns, its daemon's end, captures, placement. */
#include "unit/preload/agent_world.h"

/* The library exports this function; the header looks it up. */
void tandem_step(void);

CASE(a_newcomer_waits_asks_once_and_goes_on_when_ready)
{
	daemon_listen();
	begin();
	program(5);
	daemon_welcome();
	EXPECT(!d.hello.holds);
	EXPECT(next(TD_MSG_TYPE_want).want.word == TD_WORD_CLOSED);
	EXPECT(atomic_load(&launched) == 0);
	daemon_open(50 * MIB);
	until_launched(5);
	EXPECT(!came(TD_MSG_TYPE_want));
	EXPECT(td_client_capacity(0) == 100 * MIB);
}

CASE(without_a_daemon_nothing_waits)
{
	begin();
	launch_on(NULL);
	EXPECT(td_client_need(0, MIB, TD_MOVABLE) == 0);
	EXPECT(td_gate_word() == 0);
}

CASE(a_step_is_reported_at_once_where_the_page_asks_for_it)
{
	start_open(1);
	atomic_store(&d.gate->steps, 1);
	tandem_step();
	EXPECT(next(TD_MSG_TYPE_step).step.steps == 1);
}

CASE(a_closing_waits_for_the_device_then_memory_leaves)
{
	struct td_msg msg;

	start_open(3);
	atomic_store(&fake.demanded, 40 * MIB);
	atomic_store(&fake.resident, 40 * MIB);
	atomic_store(&fake.busy, true);
	daemon_close(10 * MIB);
	program(2);
	until_waiting();
	EXPECT(atomic_load(&fake.shrinks) == 0);
	atomic_store(&fake.busy, false);
	msg = next(TD_MSG_TYPE_drained);
	EXPECT(msg.drained.launches == 3 && msg.drained.frozen_ns &&
		msg.drained.frozen_ns <= msg.drained.drained_ns);
	do
		msg = next(TD_MSG_TYPE_used);
	while (msg.used.acked_seq != d.seq);
	EXPECT(msg.used.device_bytes == 10 * MIB && msg.used.total_bytes == 40 * MIB);
	EXPECT(atomic_load(&launched) == 3);
	daemon_open(50 * MIB);
	until_launched(5);
	EXPECT(atomic_load(&fake.resident) == 40 * MIB);
}

CASE(what_is_idle_is_drained_without_a_wait)
{
	unsigned syncs;

	start_open(1);
	atomic_store(&fake.tells_idle, true);
	syncs = atomic_load(&fake.context_syncs);
	daemon_close(50 * MIB);
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(atomic_load(&fake.context_syncs) == syncs);
	word(0);
	program(1);
	until_launched(2);
	atomic_store(&fake.busy, true);
	daemon_close(50 * MIB);
	program(1);
	until_waiting();
	td_time_sleep_until_ns(td_time_now_ns() + 20 * MS);
	EXPECT(!came(TD_MSG_TYPE_drained));
	atomic_store(&fake.busy, false);
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(atomic_load(&fake.context_syncs) > syncs);
}

CASE(who_is_known_to_want_the_gpu_says_so_once)
{
	struct td_msg msg;

	start_open(1);
	while (came(TD_MSG_TYPE_want))
		;
	daemon_close(50 * MIB);
	program(1);
	until_waiting();
	do {
		EXPECT(!td_socket_recv(d.fd, &msg, NULL, 0));
		EXPECT(msg.type != TD_MSG_TYPE_want);
	} while (msg.type != TD_MSG_TYPE_drained);
	td_time_sleep_until_ns(td_time_now_ns() + 20 * MS);
	EXPECT(!came(TD_MSG_TYPE_want));
}

CASE(a_drain_that_does_not_end_is_reported_and_the_program_goes_on)
{
	drain_deadline = "100ms";
	start_open(1);
	atomic_store(&fake.busy, true);
	daemon_close(0);
	program(1);
	EXPECT(next(TD_MSG_TYPE_stuck).stuck.waited_ns >= 100 * MS);
	word(0);
	until_launched(2);
	EXPECT(atomic_load(&fake.shrinks) == 0);
	/* The drain thread is still inside; the next closing waits for its own pass. */
	daemon_close(0);
	(void)next(TD_MSG_TYPE_stuck);
	word(0);
	atomic_store(&fake.busy, false);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
}

static _Atomic int need_result = -1;

static void *ask_for_memory(void *arg)
{
	(void)arg;
	atomic_store(&need_result, td_client_need(0, 8 * MIB, TD_MOVABLE));
	return NULL;
}

CASE(an_allocation_is_answered_while_a_drain_waits)
{
	struct td_msg msg;
	pthread_t thread;

	start_open(1);
	atomic_store(&fake.demanded, 48 * MIB);
	atomic_store(&fake.busy, true);
	daemon_close(50 * MIB);
	pthread_create(&thread, NULL, ask_for_memory, NULL);
	msg = next(TD_MSG_TYPE_ask);
	EXPECT(msg.ask.bytes == 8 * MIB);
	answer(msg.ask.ticket, TD_ANSWER_LATER, 50 * MIB);
	pthread_join(thread, NULL);
	EXPECT(atomic_load(&need_result) == 2);
	EXPECT(!td_client_may_defer(0)); /* work is still running */
	atomic_store(&fake.busy, false);
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(td_client_may_defer(0));
}

CASE(what_was_granted_and_has_not_landed_is_in_every_report)
{
	struct td_msg msg;

	start_open(1);
	EXPECT(td_client_need(0, 30 * MIB, TD_MOVABLE) == 0); /* the limit covers it */
	daemon_close(5 * MIB);
	(void)next(TD_MSG_TYPE_drained);
	td_client_memory_changed(0);
	msg = next(TD_MSG_TYPE_used);
	EXPECT(msg.used.total_bytes == 30 * MIB && msg.used.device_bytes == 30 * MIB);
	EXPECT(atomic_load(&fake.shrinks) == 0);
	atomic_store(&fake.demanded, 30 * MIB);
	atomic_store(&fake.resident, 30 * MIB);
	td_client_settled(0, 30 * MIB, 0, TD_MOVABLE);
	do
		msg = next(TD_MSG_TYPE_used);
	while (msg.used.acked_seq != d.seq || msg.used.device_bytes != 5 * MIB);
	EXPECT(msg.used.total_bytes == 30 * MIB);
}

CASE(what_was_granted_for_good_keeps_no_limit_from_falling)
{
	struct td_msg msg;

	start_open(1);
	EXPECT(td_client_need(0, 30 * MIB, TD_FIXED) == 0);
	/*
	 * A thread may wait at the gate while it holds the stream: that thread counts as inside,
	 * and stays.
	 */
	daemon_close(5 * MIB);
	(void)next(TD_MSG_TYPE_drained);
	do
		msg = next(TD_MSG_TYPE_used);
	while (msg.used.acked_seq != d.seq);
	EXPECT(msg.used.device_bytes == 30 * MIB && msg.used.fixed_bytes == 30 * MIB);
	td_client_settled(0, 30 * MIB, 0, TD_FIXED);
	do
		msg = next(TD_MSG_TYPE_used);
	while (msg.used.device_bytes);
	EXPECT(!msg.used.fixed_bytes && !msg.used.total_bytes);
}

CASE(idleness_is_told_once_others_wait_and_so_is_its_end)
{
	start_open(2);
	plan(TD_GATE_OPEN, true, 50 * MIB);
	EXPECT(next(TD_MSG_TYPE_idle).idle.launches == 2);
	launch_on(NULL);
	(void)next(TD_MSG_TYPE_want);
	(void)next(TD_MSG_TYPE_idle);
}

CASE(a_process_with_work_in_flight_is_not_idle)
{
	start_open(1);
	atomic_store(&fake.busy, true);
	plan(TD_GATE_OPEN, true, 50 * MIB);
	td_time_sleep_until_ns(td_time_now_ns() + 30 * MS);
	EXPECT(!came(TD_MSG_TYPE_idle));
	atomic_store(&fake.busy, false);
	(void)next(TD_MSG_TYPE_idle);
}

static void *needs_all(void *unused)
{
	(void)unused;
	(void)td_client_need(0, 60 * MIB, TD_MOVABLE);
	return NULL;
}

/* It is about to use the memory: the end of the turn would take it away. */
CASE(who_waits_for_memory_or_for_it_to_land_is_not_idle)
{
	struct td_msg msg;
	pthread_t thread;

	start_open(1);
	plan(TD_GATE_OPEN, true, 50 * MIB);
	(void)next(TD_MSG_TYPE_idle);
	EXPECT(!pthread_create(&thread, NULL, needs_all, NULL));
	msg = next(TD_MSG_TYPE_ask);
	(void)next(TD_MSG_TYPE_want);
	td_time_sleep_until_ns(td_time_now_ns() + 30 * MS);
	EXPECT(!came(TD_MSG_TYPE_idle));
	answer(msg.ask.ticket, TD_ANSWER_OK, 100 * MIB);
	EXPECT(!pthread_join(thread, NULL));
	td_time_sleep_until_ns(td_time_now_ns() + 30 * MS);
	EXPECT(!came(TD_MSG_TYPE_idle));
	td_client_settled(0, 60 * MIB, TD_NEED_DEVICE, TD_MOVABLE);
	(void)next(TD_MSG_TYPE_idle);
}

CASE(an_armed_gate_lets_through_and_tells)
{
	start_open(1);
	word(TD_WORD_ARMED | TD_WORD_STEP);
	launch_on(NULL);
	EXPECT(next(TD_MSG_TYPE_want).want.word == (TD_WORD_ARMED | TD_WORD_STEP));
	EXPECT(atomic_load(&launched) == 2);
}

CASE(a_holder_goes_on_without_its_daemon_and_tells_the_next)
{
	start_open(2);
	daemon_die();
	program(3);
	until_launched(5);
	daemon_listen();
	daemon_welcome();
	EXPECT(d.hello.holds);
	EXPECT(next(TD_MSG_TYPE_used).used.acked_seq == 0);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
}

CASE(who_waited_goes_on_after_a_grace_time_with_its_memory_back)
{
	start_open(1);
	daemon_close_and_shrink(20 * MIB);
	program(1);
	until_waiting();
	atomic_store(&fake.full, true);
	daemon_die();
	td_time_sleep_until_ns(td_time_now_ns() + 400 * MS); /* longer than grace and jitter */
	EXPECT(atomic_load(&launched) == 1);                 /* no room yet */
	atomic_store(&fake.full, false);
	until_launched(2);
	EXPECT(atomic_load(&fake.resident) == 20 * MIB);
}

CASE(who_waited_for_memory_that_cannot_come_back_goes_on_too)
{
	daemon_listen();
	begin();
	program(1);
	daemon_welcome();
	until_waiting();
	atomic_store(&fake.demanded, 20 * MIB);
	atomic_store(&fake.failing, true);
	daemon_die();
	until_launched(1); /* and sees its error */
}

CASE(who_waited_and_meets_a_new_daemon_in_time_still_waits)
{
	grace = "60s";
	daemon_listen();
	begin();
	program(1);
	daemon_welcome();
	until_waiting();
	daemon_die();
	daemon_listen();
	daemon_welcome();
	EXPECT(!d.hello.holds);
	until_waiting();
	EXPECT(atomic_load(&launched) == 0);
	daemon_open(50 * MIB);
	until_launched(1);
}

CASE(who_waits_for_a_daemon_that_welcomes_and_refuses_it_goes_on_too)
{
	int connections = 0;

	grace = "700ms";
	daemon_listen();
	begin();
	program(1);
	for (; !atomic_load(&launched) && connections < 30; connections++) {
		daemon_greet();
		close(d.fd);
	}
	EXPECT(atomic_load(&launched) == 1);
	/* Each attempt waits twice as long as the one before: 0.1 s, 0.2 s, 0.4 s and so on. */
	EXPECT(connections < 8);
}

CASE(a_program_whose_gpu_has_no_name_says_so_once)
{
	atomic_store(&fake.nameless, true);
	daemon_listen();
	begin();
	program(2);
	daemon_greet();
	EXPECT(next(TD_MSG_TYPE_ungoverned).ungoverned.reason == TD_UNGOVERNED_UNNAMED);
	word(0); /* it is let go */
	until_launched(2);
	EXPECT(!came(TD_MSG_TYPE_ungoverned) && !came(TD_MSG_TYPE_attach));
}

CASE(a_program_that_closes_every_descriptor_loses_nothing_but_the_connection)
{
	int fd;

	start_open(1);
	for (fd = 500; fd < 1024; fd++)
		(void)syscall(SYS_close, fd); /* as rudely as a program does it */
	/* The numbers belong to the program now; not a byte of ours may get into them. */
	fd = fcntl(new_page((void *[]){NULL}), F_DUPFD, 700);
	EXPECT(fd >= 700);
	td_client_memory_changed(0);
	program(2);
	daemon_welcome();
	EXPECT(d.hello.holds);
	until_launched(3);
	EXPECT(lseek(fd, 0, SEEK_CUR) == 0);
}

CASE(the_child_of_a_fork_has_its_own_open_gate)
{
	int status;
	pid_t pid;

	start_open(1);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	pid = fork();
	if (pid == 0) {
#ifdef __SANITIZE_THREAD__
		/*
		 * No thread can start in the child of a process with threads: no context, no agent.
		 */
		atomic_store(&fake.lost_context, true);
#endif
		unlink(d.path);
		td_agent_forked();
		td_client_forked();
		td_context_forked();
		td_drain_forked();
		td_pace_forked();
		td_marker_forked();
		td_gate_forked();
		launch_on(NULL);
		_exit(td_marker_launches() == 1 ? 0 : 1);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT(td_gate_word() & TD_WORD_CLOSED);
	program(1);
	until_waiting();
	daemon_open(50 * MIB);
	until_launched(2);
}

CASE(the_window_bounds_what_is_in_flight_but_never_for_ever)
{
	uint64_t began;

	start_open(1);
	atomic_store(&d.gate->window_ns, MS);
	word(TD_WORD_WINDOW | TD_WORD_STEP);
	atomic_store(&fake.busy, true);
	began = td_time_now_ns();
	launch_on(FAKE_STREAM);
	launch_on(FAKE_STREAM);
	EXPECT(td_time_now_ns() - began < 40 * MS || atomic_load(&launched) == 3);
	began = td_time_now_ns();
	launch_on(FAKE_STREAM);
	EXPECT(td_time_now_ns() - began >= 45 * MS);
	EXPECT(atomic_load(&fake.records) >= 2);
	atomic_store(&fake.busy, false);
}

CASE(without_the_flag_no_event_is_ever_recorded)
{
	start_open(10);
	launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&fake.records) == 0);
}

/* Such a daemon counts its changes in the flag's bit. */
CASE(a_daemon_that_knows_of_no_duty_paces_nobody)
{
	start_open(1);
	word(TD_WORD_ARMED | TD_WORD_DUTY);
	launch_on(FAKE_STREAM);
	launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&fake.records) == 0);
}

CASE(beside_a_capture_nothing_is_synchronised_context_wide_or_recorded_on_it)
{
	start_open(1);
	td_context_stream_created(FAKE_STREAM);
	td_context_capture_begin();
	atomic_store(&fake.capturing, true);
	td_context_capture_begun(true, FAKE_STREAM);
	atomic_store(&fake.busy, true);
	daemon_close(0);
	while (!atomic_load(&fake.records))
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	launch_on(FAKE_STREAM); /* captured: it passes the closed gate */
	EXPECT(td_marker_launches() == 1);
	EXPECT(!came(TD_MSG_TYPE_drained));
	atomic_store(&fake.busy, false);
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(atomic_load(&fake.syncs_in_capture) == 0);
	EXPECT(atomic_load(&fake.records_on_capture) == 0);
}

/*
 * The driver is just beginning the capture. An event on the stream now may become a part of it, and
 * querying the event would break the capture.
 */
CASE(nor_on_a_stream_of_which_it_is_not_known_yet_whether_it_captures)
{
	start_open(1);
	td_context_stream_created(FAKE_STREAM);
	td_context_capture_begin();
	daemon_close_and_let_drain();
	EXPECT(atomic_load(&fake.records) == 0);
	atomic_store(&fake.capturing, true);
	td_context_capture_begun(true, FAKE_STREAM);
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(atomic_load(&fake.records) != 0);
	EXPECT(atomic_load(&fake.records_on_capture) == 0);
}

static void *set_on(void *stream)
{
	struct td_marker *marker = td_gate_enter(stream, TD_SUBMIT_CALL);

	atomic_fetch_add(&launched, 1);
	td_gate_leave(marker);
	return NULL;
}

/*
 * A driver looks up the memory that a captured copy or set names. While the gate is closed that
 * memory may be anywhere.
 */
CASE(a_captured_set_waits_where_a_captured_launch_passes)
{
	pthread_t thread;
	uint64_t waits;

	start_open(1);
	td_context_stream_created(FAKE_STREAM);
	td_context_capture_begin();
	atomic_store(&fake.capturing, true);
	td_context_capture_begun(true, FAKE_STREAM);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	waits = atomic_load(&td_meter.page.gate_waits);
	launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&launched) == 2);
	EXPECT(!pthread_create(&thread, NULL, set_on, FAKE_STREAM));
	while (atomic_load(&td_meter.page.gate_waits) == waits && atomic_load(&launched) == 2)
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	EXPECT(atomic_load(&launched) == 2);
	word(0);
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(atomic_load(&launched) == 3);
}

CASE(beside_a_capture_own_streams_are_covered_by_their_threads)
{
	struct td_marker *marker;

	drain_deadline = "100ms";
	start_open(1);
	marker = td_gate_enter(TD_STREAM_PER_THREAD, 0);
	td_gate_leave(marker);
	td_context_capture_begin();
	atomic_store(&fake.capturing, true);
	td_context_capture_begun(true, FAKE_STREAM);
	daemon_close(0);
	(void)next(
		/* only this thread can name its stream, and it did not come by */
		TD_MSG_TYPE_stuck);
	word(0);
	launch_on(NULL);
	atomic_store(&fake.capturing, false);
	td_context_capture_ended(FAKE_STREAM);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
}

/* -- placement -- */

#define FIRST  "GPU-01010101-0101-0101-0101-010101010101"
#define SECOND "MIG-02020202-0202-0202-0202-020202020202"
#define THIRD  "GPU-03030303-0303-0303-0303-030303030303"

static struct td_placed placed;
static _Atomic bool is_placed;

static void *want_gpus(void *arg)
{
	(void)arg;
	td_place_get(&placed);
	atomic_store(&is_placed, true);
	return NULL;
}

/* A program that may see `count` of the three. */
static void begin_placed(const char *gpus, const char *count)
{
	pthread_t thread;

	setenv("TANDEM_GPUS", gpus, 1);
	setenv("TANDEM_GPU_COUNT", count, 1);
	begin();
	EXPECT(!pthread_create(&thread, NULL, want_gpus, NULL));
	pthread_detach(thread);
}

static void until_placed(void)
{
	uint64_t end = td_time_now_ns() + BOUND;

	while (!atomic_load(&is_placed)) {
		EXPECT(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + MS / 10);
	}
}

static void expect_candidates(uint32_t count, uint32_t candidates, const uint8_t *first_bytes)
{
	for (uint32_t i = 0; i < candidates; i++) {
		struct td_msg msg = next(TD_MSG_TYPE_place);

		EXPECT(msg.place.count == count && msg.place.candidates == candidates);
		EXPECT(msg.place.index == i && msg.place.gpu[0] == first_bytes[i]);
	}
}

static void give(uint32_t index, uint32_t count, uint8_t gpu)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_placed};

	msg.placed.index = index;
	msg.placed.count = count;
	memset(msg.placed.gpu, gpu, 16);
	EXPECT(!td_socket_send(d.fd, &msg, NULL, 0));
}

CASE(the_daemon_chooses_and_each_later_one_is_told)
{
	daemon_listen();
	begin_placed(FIRST "," SECOND "," THIRD, "2");
	daemon_greet();
	expect_candidates(2, 3, (const uint8_t[]){1, 2, 3});
	EXPECT(!atomic_load(&is_placed));
	give(1, 2, 3); /* out of order: not taken */
	give(0, 2, 2);
	EXPECT(!atomic_load(&is_placed));
	give(1, 2, 3);
	until_placed();
	EXPECT(placed.count == 2 && placed.uuid[0][0] == 2);
	/* what was a part of a GPU is named as one */
	EXPECT(!strcmp(placed.text[0], SECOND) && !strcmp(placed.text[1], THIRD));
	daemon_die();
	daemon_listen();
	daemon_greet();
	expect_candidates(2, 2, (const uint8_t[]){2, 3});
	give(0, 1, 1); /* too late */
	td_place_get(&placed);
	EXPECT(placed.count == 2 && placed.uuid[1][0] == 3);
}

CASE(a_daemon_that_is_being_replaced_is_waited_for)
{
	grace = "10s";
	daemon_listen();
	begin_placed(FIRST "," THIRD, "1");
	d.fd = accept(d.listener, NULL, NULL);
	EXPECT(d.fd >= 0);
	daemon_die();
	daemon_listen();
	daemon_greet();
	expect_candidates(1, 2, (const uint8_t[]){1, 3});
	give(0, 1, 3);
	until_placed();
	EXPECT(placed.count == 1 && !strcmp(placed.text[0], THIRD));
}

CASE(without_a_daemon_nobody_waits_for_its_choice)
{
	uint64_t start_ns = td_time_now_ns();

	begin_placed(FIRST "," THIRD, "1");
	until_placed();
	EXPECT(placed.count == 2);
	EXPECT(td_time_now_ns() < start_ns + 5 * TD_NS_PER_S);
}

CASE(where_there_is_no_choice_nobody_is_asked)
{
	begin_placed(THIRD "," FIRST, "2");
	until_placed();
	EXPECT(placed.count == 2 && !strcmp(placed.text[0], THIRD));
	EXPECT(!td_settings.rejected_count);
}

CASE(lists_of_gpus_that_make_no_sense_count_as_not_given_and_are_told_once)
{
	static const char *const bad[] = {"0", FIRST ",", "," FIRST, FIRST " ", "GPU-", "any"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("TANDEM_GPUS", bad[i], 1);
		td_settings_read();
		td_place_read();
		EXPECT(!td_place_is_wanted());
		EXPECT(td_settings.rejected_count == 1 && strstr(td_settings.rejected[0], bad[i]));
	}
	setenv("TANDEM_GPUS", "0", 1);
	setenv("TANDEM_WEIGHT", "none", 1);
	setenv("TANDEM_IDLE", "soon", 1);
	daemon_listen();
	begin();
	program(1);
	daemon_greet();
	EXPECT(!strcmp(next(TD_MSG_TYPE_rejected).rejected.setting, "TANDEM_WEIGHT=none"));
	EXPECT(!strcmp(next(TD_MSG_TYPE_rejected).rejected.setting, "TANDEM_IDLE=soon"));
	EXPECT(!strcmp(next(TD_MSG_TYPE_rejected).rejected.setting, "TANDEM_GPUS=0"));
	daemon_die();
	daemon_listen();
	daemon_greet();
	(void)next(TD_MSG_TYPE_attach);
	EXPECT(!came(TD_MSG_TYPE_rejected));
}
