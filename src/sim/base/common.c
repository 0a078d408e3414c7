/* Helpers that the verbs share; see sim.h. */
#include "sim/base/sim.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/time.h"

#define REDRAW_NS (TD_NS_PER_S / 10)

volatile sig_atomic_t td_sim_stop;

int td_sim_fail(const char *format, ...)
{
	va_list args;

	fputs("tandem-sim: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return TD_SIM_EXIT_USAGE;
}

bool td_sim_signalled(uint64_t now_ns)
{
	static volatile uint64_t first_ns;

	if (td_sim_stop)
		return now_ns - first_ns >= TD_SIM_SAME_SIGNAL_NS;
	first_ns = now_ns;
	td_sim_stop = 1;
	return false;
}

static void on_signal(int number)
{
	int kept = errno;

	if (td_sim_signalled(td_time_now_ns()))
		_exit(128 + number);
	errno = kept;
}

void td_sim_catch(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	/* Only one handler runs at a time, because each would set the other's time. */
	sigaddset(&action.sa_mask, SIGINT);
	sigaddset(&action.sa_mask, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void td_progress_begin(struct td_progress *progress, const char *what)
{
	*progress = (struct td_progress){
		.what = what, .shown = isatty(STDERR_FILENO) == 1, .began_ns = td_time_now_ns()};
}

void td_progress_put(double done, void *arg)
{
	struct td_progress *progress = arg;
	uint64_t now_ns = td_time_now_ns();
	double left_s;
	char bar[31];

	if (!progress->shown || now_ns - progress->last_ns < REDRAW_NS)
		return;
	progress->last_ns = now_ns;
	for (int i = 0; i < 30; i++)
		bar[i] = i < (int)(done * 30) ? '#' : '.';
	bar[30] = 0;
	left_s = done > 0.01 ? (double)(now_ns - progress->began_ns) * 1e-9 * (1 / done - 1) : 0;
	fprintf(stderr, "\r%-12.12s %s %3.0f %%", progress->what, bar, 100 * done);
	if (done > 0.01)
		fprintf(stderr, ", %.0f s left   ", left_s);
}

void td_progress_end(struct td_progress *progress)
{
	if (progress->last_ns)
		fputs("\r\033[K", stderr);
}

static int make_dir(const char *path, struct td_err *err)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy) || !*path)
		return td_err_set(err, -ENAMETOOLONG,
			"\"%.64s\" is not a folder's name: it is empty or too long", path);
	for (char *p = copy + 1;; p++) {
		char kept = *p;

		if (kept && kept != '/')
			continue;
		*p = 0;
		if (mkdir(copy, 0777) && errno != EEXIST)
			return td_err_set(err, -errno, "%.160s: %s", copy, strerror(errno));
		*p = kept;
		if (!kept)
			return 0;
	}
}

static int file_error(const char *dir, const char *name, int number, struct td_err *err)
{
	return td_err_set(err, -number, "%.120s/%.80s: %s", dir, name, strerror(number));
}

int td_sim_try_dir(const char *path, struct td_err *err)
{
	char probe[PATH_MAX];
	int r = make_dir(path, err), fd;

	if (r)
		return r;
	if (snprintf(probe, sizeof(probe), "%s/.tandem-sim.XXXXXX", path) >= (int)sizeof(probe))
		return td_err_set(err, -ENAMETOOLONG,
			"\"%.64s\" is not a folder's name: it is empty or too long", path);
	fd = mkstemp(probe);
	if (fd < 0)
		return td_err_set(err, -errno, "%.160s: %s", path, strerror(errno));
	close(fd);
	(void)unlink(probe);
	return 0;
}

/* Writes the path that a file has while it is incomplete. Returns 0, or -ENAMETOOLONG. */
static int name_part(char (*ret)[PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(*ret, sizeof(*ret), "%s/.%s.part", dir, name);

	return n < (int)sizeof(*ret) ? 0 : -ENAMETOOLONG;
}

FILE *td_sim_create(const char *dir, const char *name, struct td_err *err)
{
	char part[PATH_MAX];
	FILE *file = NULL;

	errno = ENAMETOOLONG;
	if (!name_part(&part, dir, name))
		file = fopen(part, "w");
	if (!file)
		file_error(dir, name, errno, err);
	return file;
}

int td_sim_close(FILE *file, const char *dir, const char *name, struct td_err *err)
{
	char part[PATH_MAX], path[PATH_MAX];
	/*
	 * If an earlier write failed, its errno is lost. So EIO is reported, unless the error
	 * repeats below.
	 */
	int number = ferror(file) ? EIO : 0;

	if (fflush(file))
		number = errno;
	if (fclose(file) && !number)
		number = errno;
	if (name_part(&part, dir, name))
		return file_error(dir, name, ENAMETOOLONG, err);
	/* This fits, because the path of the incomplete file is longer. */
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!number && rename(part, path))
		number = errno;
	if (!number)
		return 0;
	(void)unlink(part);
	return file_error(dir, name, number, err);
}
