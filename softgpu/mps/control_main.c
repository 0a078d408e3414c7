/*
 * nvidia-cuda-mps-control: starts the MPS control daemon, or reads commands for it from stdin.
 *
 *	nvidia-cuda-mps-control -d        in the background
 *	nvidia-cuda-mps-control -f        in the foreground
 *	echo COMMAND | nvidia-cuda-mps-control
 *
 * CUDA_MPS_PIPE_DIRECTORY and CUDA_MPS_LOG_DIRECTORY are as with NVIDIA's program.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/mps/daemon.h"
#include "softgpu/server/mps_pipe.h"

#define LOG_DEFAULT "/var/log/nvidia-mps"

static int complain(const char *what)
{
	fprintf(stderr, "%s\n", what);
	return 1;
}

static const char *log_directory(void)
{
	const char *set = getenv("CUDA_MPS_LOG_DIRECTORY");

	return set && *set ? set : LOG_DEFAULT;
}

/* Starts the daemon. Returns when it serves, or has failed. */
static int start_in_background(const char *pipe_directory)
{
	char why[512];
	int ready[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return complain(strerror(errno));
	if (!pid) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		setsid();
		if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
			_exit(1);
		_exit(mps_daemon_run(pipe_directory, log_directory(), ready[1]));
	}
	close(ready[1]);
	do
		n = read(ready[0], why, sizeof(why) - 1);
	while (n < 0 && errno == EINTR);
	if (n == 1 && !why[0])
		return 0;
	why[n > 0 ? n : 0] = 0;
	return complain(n > 0 ? why : "the daemon ended");
}

static int run_commands(const char *pipe_directory)
{
	static char text[SG_MPS_ANSWER_MAX];
	char line[512];
	int status = 0;

	while (fgets(line, sizeof(line), stdin)) {
		int r;

		line[strcspn(line, "\n")] = 0;
		if (!line[strspn(line, " \t")])
			continue;
		r = sg_mps_pipe_ask(pipe_directory, line, text, sizeof(text));
		if (r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR)
			return complain("Cannot find MPS control daemon process");
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", pipe_directory, strerror(-r));
			return 1;
		}
		fputs(text, r ? stderr : stdout);
		status |= r;
	}
	return fflush(stdout) ? 1 : status;
}

int main(int argc, char **argv)
{
	char pipe_directory[PATH_MAX];

	if (sg_mps_pipe_directory(pipe_directory, sizeof(pipe_directory)))
		return complain(SG_MPS_PIPE_ENV " is too long");
	if (argc == 1)
		return run_commands(pipe_directory);
	if (argc == 2 && !strcmp(argv[1], "-d"))
		return start_in_background(pipe_directory);
	if (argc == 2 && !strcmp(argv[1], "-f"))
		return mps_daemon_run(pipe_directory, log_directory(), -1);
	return complain("usage: nvidia-cuda-mps-control [-d | -f], commands on stdin");
}
