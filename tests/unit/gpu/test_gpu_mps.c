/* A control daemon of our own, as a script on the PATH: started, watched, restarted, ended. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/time.h"
#include "gpu/mps.h"

/* Its control daemon waits for a line of a FIFO; what it answers is in files of its directory. */
static const char script[] = "#!/bin/sh\n"
			     "cd \"$CUDA_MPS_PIPE_DIRECTORY\" || exit 1\n"
			     "case \"$1\" in\n"
			     "-d) if [ -e ../../refuse ]; then echo 'refused here'; exit 1; fi\n"
			     "    rm -f fifo; mkfifo fifo; echo \"$CUDA_VISIBLE_DEVICES\" > gpu; "
			     "echo x >> ../../starts\n"
			     "    \"$0\" -f < /dev/null > /dev/null 2>&1 &\n"
			     "    echo $! > nvidia-cuda-mps-control.pid;;\n"
			     "-f) read line < fifo; rm -f nvidia-cuda-mps-control.pid;;\n"
			     "*) read command\n"
			     "   case \"$command\" in\n"
			     "   get_server_list) [ -e ../../hang ] && exec sleep 600\n"
			     "                    cat servers 2> /dev/null;;\n"
			     "   get_server_status*) cat status;;\n"
			     "   quit*) echo \"$command\" > ../../quit; echo end > fifo;;\n"
			     "   esac;;\n"
			     "esac\n"
			     "exit 0\n";

static char root[64], directory[96];
static struct td_mpsd mps;
static bool is_kept; /* by the kernel: a signal does not end it yet, as in a driver's call */

int __real_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal);

int __wrap_kill(pid_t pid, int signal)
{
	return is_kept && signal == SIGKILL ? 0 : __real_kill(pid, signal);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[192];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void read_file(const char *name, char *ret, size_t len)
{
	char path[192];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	n = read(fd, ret, len - 1);
	ret[n > 0 ? n : 0] = 0;
	close(fd);
}

static void begin(void)
{
	char path[4096];

	strcpy(root, "/tmp/tandem-mps-XXXXXX");
	CHECK(mkdtemp(root) != NULL);
	snprintf(directory, sizeof(directory), "%s/mps/0", root);
	write_file(TD_MPS_PROGRAM, script, 0755);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", root);
	setenv("PATH", path, 1);
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	CHECK_EQ(td_mpsd_init(&mps, directory, "GPU-1"), 0);
}

/* Steps, as the loop does, until it is so; with a bound that only a hang reaches. */
static void until(enum td_mpsd_state state)
{
	uint64_t end_ns = td_time_now_ns() + 60 * TD_NS_PER_S;

	for (;;) {
		uint64_t now_ns = td_time_now_ns(), next_ns = td_mpsd_step(&mps, now_ns);
		struct pollfd fd = {.fd = td_mpsd_fd(&mps), .events = POLLIN};
		uint64_t ms = next_ns > now_ns ? (next_ns - now_ns) / TD_NS_PER_MS + 1 : 0;

		if (mps.state == state)
			return;
		CHECK(now_ns < end_ns);
		(void)poll(&fd, 1, ms < 1000 ? (int)ms : 1000);
	}
}

/* A command that is under way may have seen the world as it was before. */
static void until_nothing_is_asked(void)
{
	uint64_t end_ns = td_time_now_ns() + 60 * TD_NS_PER_S;

	while (mps.call.pid) {
		struct pollfd fd = {.fd = td_mpsd_fd(&mps), .events = POLLIN};

		CHECK(td_time_now_ns() < end_ns);
		(void)poll(&fd, 1, 1000);
		(void)td_mpsd_step(&mps, td_time_now_ns());
	}
}

static void until_it_is_asked(void)
{
	uint64_t end_ns = td_time_now_ns() + 60 * TD_NS_PER_S;

	while (!mps.call.pid) {
		CHECK(td_time_now_ns() < end_ns);
		(void)td_mpsd_step(&mps, mps.look_ns);
	}
}

static void end(void)
{
	char command[128];

	td_mpsd_want(&mps, false);
	until(TD_MPSD_OFF);
	td_mpsd_deinit(&mps);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	CHECK_EQ(system(command), 0);
}

TEST(answers_are_read)
{
	CHECK_EQ(td_mps_parse_list("1234\n"), 1234);
	CHECK_EQ(td_mps_parse_list("1234\n99\n"), 1234);
	CHECK_EQ(td_mps_parse_list(""), 0);
	CHECK_EQ(td_mps_parse_list("none\n"), 0);
	CHECK_EQ(td_mps_parse_list("12 34\n"), 0);
	CHECK_EQ(td_mps_parse_list("99999999999\n"), 0);
	CHECK(td_mps_parse_fault("FAULT\n"));
	CHECK(!td_mps_parse_fault("ACTIVE\n"));
}

TEST(it_runs_while_it_is_wanted)
{
	char text[64];

	begin();
	until(TD_MPSD_OFF);
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	CHECK(mps.control > 0 && !kill(mps.control, 0));
	read_file("mps/0/gpu", text, sizeof(text));
	CHECK_STR(text, "GPU-1\n");
	td_mpsd_want(&mps, false);
	until(TD_MPSD_OFF);
	CHECK_EQ(mps.control, 0);
	read_file("quit", text, sizeof(text));
	CHECK_STR(text, "quit\n");
	end();
}

TEST(its_server_is_found_soon_where_there_are_clients)
{
	pid_t server = fork();
	uint64_t asked_ns;
	char text[32];

	if (!server) {
		pause();
		_exit(0);
	}
	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	until_nothing_is_asked();
	asked_ns = mps.look_ns - 2 * TD_NS_PER_S;
	snprintf(text, sizeof(text), "%d\n", (int)server);
	write_file("mps/0/servers", text, 0644);
	CHECK_EQ(td_mpsd_step(&mps, asked_ns + TD_NS_PER_S), asked_ns + 2 * TD_NS_PER_S);
	CHECK_EQ(td_mpsd_find(&mps), asked_ns + 200 * TD_NS_PER_MS);
	CHECK_EQ(td_mpsd_find(&mps), asked_ns + 200 * TD_NS_PER_MS);
	until_it_is_asked();
	CHECK_EQ(td_mpsd_find(&mps), UINT64_MAX);
	until_nothing_is_asked();
	CHECK_EQ(mps.server, server);
	CHECK_EQ(td_mpsd_find(&mps), UINT64_MAX);
	kill(server, SIGKILL);
	end();
}

/* Lets the command that runs end. No time passes meanwhile, so that none follows it. */
static void let_it_end(void)
{
	while (mps.call.pid) {
		struct pollfd fd = {.fd = td_mpsd_fd(&mps), .events = POLLIN};

		CHECK(poll(&fd, 1, 60000) == 1);
		(void)td_mpsd_step(&mps, mps.asked_ns);
	}
}

TEST(a_server_that_does_not_come_is_looked_for_ever_more_rarely)
{
	static const uint64_t pauses_ms[] = {200, 400, 800, 1600, 2000, 2000};

	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	until_it_is_asked();
	let_it_end();
	for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(*pauses_ms); i++) {
		CHECK_EQ(td_mpsd_find(&mps) - mps.asked_ns, pauses_ms[i] * TD_NS_PER_MS);
		until_it_is_asked();
		let_it_end();
	}
	/* Nobody looks for it, and then somebody does again. */
	until_it_is_asked();
	let_it_end();
	CHECK_EQ(td_mpsd_find(&mps) - mps.asked_ns, 200 * TD_NS_PER_MS);
	end();
}

TEST(a_faulty_server_is_seen_and_its_end)
{
	pid_t server = fork();
	char text[32];

	if (!server) {
		pause();
		_exit(0);
	}
	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	snprintf(text, sizeof(text), "%d\n", (int)server);
	write_file("mps/0/servers", text, 0644);
	write_file("mps/0/status", "FAULT\n", 0644);
	until(TD_MPSD_FAULT);
	CHECK_EQ(mps.server, server);
	kill(server, SIGKILL);
	write_file("mps/0/servers", "", 0644);
	until(TD_MPSD_READY);
	CHECK_EQ(mps.server, 0);
	end();
}

TEST(the_death_of_a_server_is_a_fault)
{
	pid_t server = fork();
	uint64_t before_ns;
	char text[32];

	if (!server) {
		pause();
		_exit(0);
	}
	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	before_ns = td_mpsd_started_ns(&mps);
	snprintf(text, sizeof(text), "%d\n", (int)server);
	write_file("mps/0/servers", text, 0644);
	write_file("mps/0/status", "ACTIVE\n", 0644);
	while (!mps.server)
		until(TD_MPSD_READY);
	CHECK(td_mpsd_started_ns(&mps) > before_ns);
	write_file("mps/0/servers", "", 0644);
	kill(server, SIGKILL);
	until(TD_MPSD_FAULT);
	CHECK_STR(mps.why, "the server has ended: see server.log");
	until(TD_MPSD_READY);
	end();
}

TEST(one_that_dies_is_started_again)
{
	char text[16];
	pid_t first;

	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	first = mps.control;
	kill(first, SIGKILL);
	until(TD_MPSD_FAILED);
	CHECK_STR(mps.why, "the control daemon has ended: see control.log");
	until(TD_MPSD_READY);
	CHECK(mps.control != first);
	read_file("starts", text, sizeof(text));
	CHECK_STR(text, "x\nx\n");
	end();
}

TEST(one_that_does_not_start_says_why_and_is_tried_again)
{
	char path[96];

	begin();
	write_file("refuse", "", 0644);
	td_mpsd_want(&mps, true);
	until(TD_MPSD_FAILED);
	CHECK_STR(mps.why, "refused here");
	snprintf(path, sizeof(path), "%s/refuse", root);
	unlink(path);
	until(TD_MPSD_READY);
	end();
}

TEST(one_that_does_not_even_die_is_not_waited_for)
{
	uint64_t later_ns = td_time_now_ns() + 600 * TD_NS_PER_S;
	pid_t kept;
	char text[96];

	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	until_nothing_is_asked();
	write_file("hang", "", 0644);
	until_it_is_asked();
	kept = mps.call.pid;
	is_kept = true;
	alarm(60); /* whoever waits for it waits for ever */
	(void)td_mpsd_step(&mps, later_ns);
	CHECK_EQ(mps.state, TD_MPSD_FAILED);
	CHECK_STR(mps.why, TD_MPS_PROGRAM " does not answer");
	/* Nothing else is started beside it, whenever it is. */
	for (unsigned i = 1; i < 5; i++) {
		CHECK_EQ(td_mpsd_step(&mps, later_ns * i), UINT64_MAX);
		CHECK_EQ(mps.call.pid, kept);
	}
	alarm(0);
	is_kept = false;
	CHECK_EQ(kill(kept, SIGKILL), 0);
	snprintf(text, sizeof(text), "%s/hang", root);
	unlink(text);
	until(TD_MPSD_READY);
	CHECK_EQ(kill(kept, 0), -1); /* no zombie is left */
	end();
}

TEST(a_program_that_is_missing_is_named)
{
	begin();
	setenv("PATH", "/nowhere", 1);
	td_mpsd_want(&mps, true);
	until(TD_MPSD_FAILED);
	CHECK_STR(mps.why,
		"nvidia-cuda-mps-control is not on the PATH: it comes with NVIDIA's driver");
	setenv("PATH", "/usr/bin:/bin", 1);
	end();
}

TEST(a_restart_ends_the_old_one_at_once)
{
	char text[64];
	pid_t first;

	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	first = mps.control;
	td_mpsd_restart(&mps);
	until(TD_MPSD_STOPPING);
	until(TD_MPSD_READY);
	CHECK(mps.control != first);
	read_file("quit", text, sizeof(text));
	CHECK_STR(text, "quit -t 0\n");
	end();
}

TEST(one_that_was_left_behind_is_taken_over)
{
	struct td_mpsd before;
	pid_t first;

	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	first = mps.control;
	before = mps; /* as if its tandemd had died */
	CHECK_EQ(td_mpsd_init(&mps, directory, "GPU-1"), 0);
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	CHECK_EQ(mps.control, first);
	close(before.epoll_fd);
	end();
}

TEST(a_stale_pid_file_is_no_daemon)
{
	struct td_mps_place place;

	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	CHECK(td_mps_look(directory, &place) && place.alive && place.pid == mps.control);
	td_mpsd_want(&mps, false);
	until(TD_MPSD_OFF);
	/* A process that is there, and is no control daemon. */
	write_file("mps/0/nvidia-cuda-mps-control.pid", "1\n", 0644);
	CHECK(td_mps_look(directory, &place) && !place.alive && place.pid == 1);
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	CHECK(mps.control != 1);
	end();
}

TEST(files_that_others_made_are_not_followed)
{
	struct td_mps_place place;
	char link[160], target[160];

	begin();
	snprintf(link, sizeof(link), "%s/planted", root);
	snprintf(target, sizeof(target), "%s/planted/nvidia-cuda-mps-control.pid", root);
	CHECK_EQ(mkdir(link, 0700), 0);
	CHECK_EQ(symlink("/proc/self/stat", target), 0);
	CHECK(!td_mps_look(link, &place));
	CHECK_EQ(unlink(target), 0);
	CHECK_EQ(mkfifo(target, 0600), 0);
	CHECK(!td_mps_look(link, &place));
	/* A link in place of the directory is not followed either. */
	CHECK_EQ(unlink(target), 0);
	CHECK_EQ(rmdir(link), 0);
	snprintf(target, sizeof(target), "%s/real", root);
	CHECK_EQ(mkdir(target, 0700), 0);
	write_file("real/nvidia-cuda-mps-control.pid", "1\n", 0644);
	CHECK(td_mps_look(target, &place));
	CHECK_EQ(symlink(target, link), 0);
	CHECK(!td_mps_look(link, &place));
	/* Another user's directory is not believed. */
	if (!geteuid()) {
		CHECK_EQ(chown(target, 12345, 12345), 0);
		CHECK(!td_mps_look(target, &place));
	}
	end();
}

TEST(somebody_elses_is_found_by_the_environment_unless_it_is_ours)
{
	struct td_mps_place place;

	begin();
	td_mpsd_want(&mps, true);
	until(TD_MPSD_READY);
	setenv("CUDA_MPS_PIPE_DIRECTORY", directory, 1);
	CHECK(td_mps_foreign("/elsewhere", &place));
	CHECK_STR(place.directory, directory);
	CHECK_EQ(place.pid, mps.control);
	CHECK(!td_mps_foreign(root, &place) || strcmp(place.directory, directory));
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	end();
}
