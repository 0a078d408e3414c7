/* The screen of `tandem top`, as a person sees it: rows of a daemon in, lines of text out. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"
#include "test.h"
#include "view/screen.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define S   1000000000ull

static struct td_snapshot snapshot, before;
static struct td_screen screen;
static struct td_canvas canvas;
static char text[4 * TD_CANVAS_MAX + 1];

static void begin(unsigned rows, unsigned columns)
{
	setlocale(LC_ALL, "C.UTF-8");
	td_snapshot_deinit(&snapshot);
	td_snapshot_deinit(&before);
	td_screen_deinit(&screen);
	td_canvas_deinit(&canvas);
	strcpy(screen.host, "node1");
	strcpy(screen.policy, "nvshare");
	CHECK_EQ(td_canvas_init(&canvas, rows, columns, false), 0);
}

static void gpu(struct td_snapshot *s, uint32_t index, uint32_t util_ppm, uint64_t used)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_gpu};

	msg.gpu.index = index;
	memset(msg.gpu.gpu, (int)index + 1, 16);
	strcpy(msg.gpu.name, "NVIDIA H100 80GB HBM3");
	msg.gpu.known = TD_GPU_KNOWS_UTILISATION | TD_GPU_KNOWS_MEMORY;
	msg.gpu.util_ppm = util_ppm;
	msg.gpu.used_bytes = used;
	msg.gpu.memory_bytes = 80 * GIB;
	CHECK_EQ(td_snapshot_take(s, &msg), 0);
}

static struct td_msg_job *job(
	struct td_snapshot *s, uint32_t pid, uint32_t on_gpu, const char *name, const char *state)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_job};

	snprintf(msg.job.job, sizeof(msg.job.job), "%u.abc", pid);
	strcpy(msg.job.name, name);
	strcpy(msg.job.state, state);
	strcpy(msg.job.class, "besteffort");
	msg.job.pid = pid;
	msg.job.gpu = on_gpu;
	msg.job.resident_bytes = pid * MIB;
	CHECK_EQ(td_snapshot_take(s, &msg), 0);
	return &s->jobs[s->job_count - 1].said;
}

static void end(struct td_snapshot *s, uint64_t time_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_end, .end.time_ns = time_ns};

	CHECK_EQ(td_snapshot_take(s, &msg), 1);
}

static const char *line(unsigned row)
{
	return td_canvas_line(&canvas, row, text);
}

/* The row of the canvas that has the text; canvas.rows: none has. */
static unsigned row_of(const char *part)
{
	unsigned row = 0;

	while (row < canvas.rows && !strstr(line(row), part))
		row++;
	return row;
}

TEST(rates_are_of_the_time_between_two_rounds)
{
	struct td_msg_job *j;

	begin(24, 80);
	j = job(&before, 7, 0, "a", "running");
	j->held_ns = 3 * S;
	j->in_bytes = 100;
	j->launches = 50;
	end(&before, 10 * S);
	j = job(&snapshot, 7, 0, "a", "running");
	j->held_ns = 4 * S;
	j->in_bytes = 300;
	j->out_bytes = 8;
	j->launches = 40; /* it has gone back */
	(void)job(&snapshot, 8, 0, "newcomer", "waiting");
	end(&snapshot, 14 * S);
	CHECK_EQ(td_snapshot_rates(&snapshot, &before), 0);
	CHECK(snapshot.jobs[0].has_rates && !snapshot.jobs[1].has_rates);
	CHECK(snapshot.jobs[0].held == 0.25);
	CHECK(snapshot.jobs[0].in_bytes == 50);
	CHECK(snapshot.jobs[0].out_bytes == 2);
	CHECK(snapshot.jobs[0].launches == 0);
}

TEST(a_pid_that_is_used_again_is_another_process)
{
	begin(24, 80);
	job(&before, 7, 0, "a", "running")->started_ns = 1;
	end(&before, S);
	job(&snapshot, 7, 0, "a", "running")->started_ns = 2;
	end(&snapshot, 2 * S);
	CHECK_EQ(td_snapshot_rates(&snapshot, &before), 0);
	CHECK(!snapshot.jobs[0].has_rates);
}

TEST(a_round_without_an_older_one_has_no_rates)
{
	begin(24, 80);
	(void)job(&snapshot, 7, 0, "a", "running");
	end(&snapshot, 2 * S);
	CHECK_EQ(td_snapshot_rates(&snapshot, &before), 0);
	CHECK(!snapshot.jobs[0].has_rates);
}

TEST(jobs_are_sorted_and_filtered)
{
	size_t order[3];

	begin(24, 80);
	(void)job(&snapshot, 30, 1, "train", "running");
	(void)job(&snapshot, 20, 0, "serve", "waiting");
	(void)job(&snapshot, 10, 1, "Train-2", "idle");
	end(&snapshot, S);
	CHECK_EQ(td_jobs_order(&snapshot, TD_JOBS_gpu, false, "", order), 3);
	CHECK(order[0] == 1 && order[1] == 2 && order[2] == 0);
	CHECK_EQ(td_jobs_order(&snapshot, TD_JOBS_device, true, "", order), 3);
	CHECK(order[0] == 0 && order[1] == 1 && order[2] == 2);
	CHECK_EQ(td_jobs_order(&snapshot, TD_JOBS_name, false, "TRAIN", order), 2);
	CHECK(order[0] == 0 && order[1] == 2);
	CHECK_EQ(td_jobs_order(&snapshot, TD_JOBS_name, false, "20", order), 1);
	CHECK_EQ(td_jobs_order(&snapshot, TD_JOBS_name, false, "nothing", order), 0);
}

TEST(each_key_has_a_name_that_finds_it)
{
	for (unsigned key = 0; key < TD_JOBS_N; key++)
		CHECK_EQ(td_jobs_find(td_jobs_info((enum td_jobs_column)key)->id), key);
	CHECK_EQ(td_jobs_find("colour"), TD_JOBS_N);
}

/* Exactly what stands on a terminal of 80 columns. */
TEST(a_small_terminal_shows_what_matters)
{
	struct td_msg_job *j;

	begin(24, 80);
	gpu(&snapshot, 0, 500000, 20 * GIB);
	j = job(&before, 100, 0, "resnet", "running");
	end(&before, S);
	j = job(&snapshot, 100, 0, "resnet", "running");
	j->held_ns = S / 2;
	j->duty_ppm = 300000;
	j->limit_bytes = GIB;
	j->host_bytes = 3 * MIB;
	j->waited_ns = 90 * S;
	end(&snapshot, 2 * S);
	CHECK_EQ(td_snapshot_rates(&snapshot, &before), 0);
	CHECK_EQ(td_screen_note_gpus(&screen, &snapshot), 0);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK_STR(line(0), "tandem node1  policy nvshare  1 GPU  1 process: 1 running 0 waiting");
	CHECK_STR(line(1),
		"  0 NVIDIA H100 80G+ busy █████·····  50% memory ██▌·······  25% 20.0/80.0 GiB");
	CHECK_STR(line(2), "                                       ▄");
	CHECK_STR(line(3),
		"GPU▲NAME             STATE    TIME DUTY    DEVICE      HOST     LIMIT    WAITED");
	CHECK_STR(line(4),
		"  0 resnet           running   50%  30%   100 MiB   3.0 MiB   1.0 GiB   90.00 s");
	CHECK_STR(line(5), "");
	CHECK_STR(line(23),
		"q quit  e explain  p pause  x evict  s sort  r reverse  / filter  h help");
}

TEST(a_wide_terminal_shows_more_columns)
{
	begin(24, 160);
	(void)job(&snapshot, 100, 0, "resnet", "running");
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("PID CLASS") < canvas.rows && row_of("LAUNCH/S") < canvas.rows);
}

/* A job that serves requests, with its P99 in ms. */
static void serve(struct td_msg_job *j, uint64_t p99_ms)
{
	strcpy(j->service, "resnet");
	j->rate_milli = 1234000;
	j->p99_ns = p99_ms * 1000000;
	j->objective_ns = 50000000;
}

TEST(what_nobody_has_takes_no_room)
{
	begin(24, 80);
	(void)job(&snapshot, 100, 0, "train", "running");
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("P99") == canvas.rows && row_of("RESTARTS") == canvas.rows);
	CHECK(row_of("LIMIT") == canvas.rows && row_of("DUTY") == canvas.rows);
	serve(&snapshot.jobs[0].said, 12);
	snapshot.jobs[0].said.restarts = 2;
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK_STR(line(1),
		"GPU▲NAME             STATE    TIME    DEVICE      HOST       P99    WAITED");
	CHECK_STR(line(2),
		"  0 train            running     -   100 MiB         -   12.0 ms         -");
	/* When its job has ended the column stays where it is. */
	td_snapshot_clear(&snapshot);
	end(&snapshot, 2 * S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("P99") < canvas.rows);
}

TEST(a_service_that_misses_its_objective_says_so)
{
	const struct td_canvas_cell *cell;
	unsigned row;

	begin(24, 160);
	serve(job(&snapshot, 100, 0, "serve", "running"), 61);
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	row = row_of("!61.0 ms");
	CHECK(row < canvas.rows && row_of("REQ/S") == row - 1);
	CHECK(strstr(line(row), "   1234  !61.0 ms  50.0 ms"));
	cell = &canvas.cells[row * canvas.columns];
	for (unsigned i = 0; i < canvas.columns; i++)
		CHECK(*cell[i].text != '!' || cell[i].style == TD_STYLE_BAD);
	serve(&snapshot.jobs[0].said, 50);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(strstr(line(row), "   1234   50.0 ms  50.0 ms"));
}

TEST(who_fails_or_is_late_is_counted_in_the_first_line)
{
	begin(24, 80);
	gpu(&snapshot, 0, 500000, 30 * GIB);
	(void)job(&snapshot, 1, 0, "train", "running");
	(void)job(&snapshot, 2, 0, "other", "waiting");
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(strstr(line(0), "2 processes: 1 running 1 waiting"));
	CHECK(!strstr(line(0), "failed") && !strstr(line(0), "late"));
	begin(24, 80);
	gpu(&snapshot, 0, 500000, 30 * GIB);
	serve(job(&snapshot, 1, 0, "slow", "running"), 350);
	(void)job(&snapshot, 2, 0, "broken", "failed");
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	/* First, as a terminal of 80 columns has no room for all of it. */
	CHECK(strstr(line(0), "2 processes: 1 failed 1 late 1 running 0"));
}

TEST(what_is_sorted_by_is_shown)
{
	begin(24, 80);
	(void)job(&snapshot, 100, 0, "train", "running");
	end(&snapshot, S);
	screen.key = TD_JOBS_launches;
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("LAUNCH/S") < canvas.rows);
	screen.key = td_screen_beside(&screen, &canvas, 1);
	CHECK_EQ(screen.key, TD_JOBS_gpu);
	CHECK_EQ(td_screen_beside(&screen, &canvas, 1), TD_JOBS_name); /* JOB is not shown */
	screen.key = TD_JOBS_name;
	CHECK_EQ(td_screen_beside(&screen, &canvas, -1), TD_JOBS_gpu);
}

TEST(rows_are_sorted_by_any_column)
{
	size_t order[2];

	begin(24, 80);
	serve(job(&snapshot, 1, 0, "b", "running"), 10);
	(void)job(&snapshot, 2, 1, "a", "waiting");
	end(&snapshot, S);
	for (unsigned key = 0; key < TD_JOBS_N; key++)
		CHECK_EQ(td_jobs_order(&snapshot, (enum td_jobs_column)key, false, "", order), 2);
	CHECK_EQ(td_jobs_order(&snapshot, TD_JOBS_p99, false, "", order), 2);
	CHECK_EQ(order[0], 1); /* nothing is less than anything */
	CHECK_EQ(td_jobs_order(&snapshot, TD_JOBS_p99, true, "", order), 2);
	CHECK_EQ(order[0], 0);
}

TEST(a_soft_limit_says_so)
{
	begin(24, 80);
	job(&snapshot, 100, 0, "resnet", "running")->soft_bytes = GIB;
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("~1.0 GiB") < canvas.rows);
}

TEST(the_cursor_is_always_seen)
{
	begin(24, 80);
	screen.has_cursor = true;
	for (uint32_t pid = 1; pid <= 300; pid++) {
		char name[16];

		snprintf(name, sizeof(name), "job-%03u", pid);
		(void)job(&snapshot, pid, 0, name, "waiting");
	}
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK_EQ(td_screen_selected(&screen, &snapshot)->said.pid, 1);
	td_screen_move(&screen, &snapshot, 200);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("job-201") < canvas.rows);
	td_screen_move(&screen, &snapshot, 1000);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("job-300") == canvas.rows - 2);
	td_screen_move(&screen, &snapshot, -1000);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("job-001") < canvas.rows && row_of("job-300") == canvas.rows);
}

TEST(a_click_finds_the_row_and_the_title)
{
	struct td_screen_spot spot;
	unsigned row;

	begin(24, 80);
	(void)job(&snapshot, 5, 0, "first", "running");
	(void)job(&snapshot, 6, 0, "second", "running");
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	row = row_of("second");
	spot = td_screen_spot(&screen, &snapshot, &canvas, row, 10);
	CHECK(spot.job && spot.job->said.pid == 6);
	spot = td_screen_spot(&screen, &snapshot, &canvas, row + 1, 10);
	CHECK(!spot.job && !spot.is_title);
	row = row_of("DEVICE");
	spot = td_screen_spot(&screen, &snapshot, &canvas, row,
		(unsigned)(strstr(line(row), "DEVICE") - text) - 2);
	CHECK(spot.is_title && spot.key == TD_JOBS_device);
}

TEST(others_are_sums)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_others,
		.others = {.gpu = 0, .processes = 3, .resident_bytes = 7 * GIB}};
	char cell[TD_JOBS_CELL] = "?";

	begin(24, 80);
	CHECK_EQ(td_snapshot_take(&snapshot, &msg), 0);
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(strstr(line(row_of("(3 of others)")), "7.0 GiB"));
	/* Nothing is said of their jobs. */
	CHECK(!*td_jobs_cell_of_others(cell, &msg.others, TD_JOBS_job));
}

TEST(many_gpus_leave_room_for_jobs)
{
	begin(24, 80);
	for (uint32_t i = 0; i < 64; i++)
		gpu(&snapshot, i, 0, 0);
	(void)job(&snapshot, 5, 0, "the-job", "running");
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("more GPUs") < canvas.rows);
	CHECK(row_of("the-job") < canvas.rows);
}

TEST(names_keep_the_columns_where_they_are)
{
	unsigned state;

	begin(24, 80);
	(void)job(&snapshot, 5, 0, "日本語", "running");
	(void)job(&snapshot, 6, 0, "tab\there", "running");
	(void)job(&snapshot, 7, 0, "größe-ünïcödé-x", "running");
	(void)job(&snapshot, 8, 0, "a-name-that-is-far-too-long", "running");
	end(&snapshot, S);
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK(row_of("???") < canvas.rows && row_of("tab?here") < canvas.rows);
	CHECK(row_of("größe-ünïcödé-x") < canvas.rows);
	CHECK(row_of("a-name-that-is-+") < canvas.rows);
	for (unsigned row = row_of("???"); row < row_of("???") + 4; row++) {
		state = row * canvas.columns + 32;
		CHECK_STR(canvas.cells[state].text, "r");
	}
}

TEST(without_utf8_everything_is_ascii)
{
	begin(24, 80);
	canvas.ascii = true;
	gpu(&snapshot, 0, 700000, 60 * GIB);
	(void)job(&snapshot, 5, 0, "größe", "running");
	end(&snapshot, S);
	CHECK_EQ(td_screen_note_gpus(&screen, &snapshot), 0);
	td_screen_draw(&screen, &snapshot, &canvas);
	for (unsigned row = 0; row < canvas.rows; row++)
		for (const char *c = line(row); *c; c++)
			CHECK(*c >= ' ' && *c < 127);
}

TEST(curves_remember_and_forget)
{
	begin(24, 80);
	for (unsigned i = 0; i < TD_CURVE_MAX + 10; i++) {
		td_snapshot_clear(&snapshot);
		gpu(&snapshot, 0, 1000 * (i % 1000), 0);
		end(&snapshot, S + i);
		CHECK_EQ(td_screen_note_gpus(&screen, &snapshot), 0);
	}
	CHECK_EQ(screen.curves[0].count, TD_CURVE_MAX);
	CHECK(screen.curves[0].values[TD_CURVE_MAX - 1] == (TD_CURVE_MAX + 9) / 1000.0);
	td_snapshot_clear(&snapshot);
	gpu(&snapshot, 1, 0, 0);
	end(&snapshot, 2 * S);
	CHECK_EQ(td_screen_note_gpus(&screen, &snapshot), 0);
	CHECK(screen.curve_count == 1 && screen.curves[0].count == 1);
}

TEST(a_bar_shows_what_is_more_than_nothing)
{
	begin(4, 10);
	td_canvas_bar(&canvas, 0, 0, 10, TD_STYLE_RUNS, 0.001);
	CHECK_STR(line(0), "▏·········");
	td_canvas_bar(&canvas, 1, 0, 10, TD_STYLE_RUNS, 0);
	CHECK_STR(line(1), "··········");
	td_canvas_bar(&canvas, 2, 0, 10, TD_STYLE_RUNS, 7);
	CHECK_STR(line(2), "██████████");
}

TEST(an_explanation_is_wrapped_at_blanks)
{
	begin(24, 40);
	(void)job(&snapshot, 5, 0, "a", "running");
	end(&snapshot, S);
	screen.detail = "one line\nand another one that is longer than the terminal is wide";
	td_screen_draw(&screen, &snapshot, &canvas);
	CHECK_STR(line(row_of("one line") + 1), " and another one that is longer than");
	CHECK_STR(line(row_of("one line") + 2), " the terminal is wide");
}

TEST(any_size_can_be_drawn_on)
{
	static const unsigned sizes[] = {1, 2, 3, 5, 10, 25, 79, 200};

	for (unsigned r = 0; r < 8; r++)
		for (unsigned c = 0; c < 8; c++) {
			begin(sizes[r], sizes[c]);
			screen.has_cursor = true;
			gpu(&snapshot, 0, 300000, GIB);
			(void)job(&snapshot, 5, 0, "a", "running");
			end(&snapshot, S);
			screen.detail = "an explanation of some length";
			td_screen_draw(&screen, &snapshot, &canvas);
			td_screen_draw(&screen, NULL, &canvas);
		}
}
