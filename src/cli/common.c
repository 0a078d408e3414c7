/* Talking to the daemon, JSON, and finding our own files; see cli.h. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "cli/cli.h"
#include "proto/socket.h"

/* A daemon that ends is not asked for ever. */
#define ASK_TIMES 5

int td_cli_socket(char *ret, size_t len)
{
	struct td_err err = {0};

	return td_socket_path_typed(ret, len, &err) ? td_cli_fail("%s", err.msg) : 0;
}

int td_cli_connect(void)
{
	char path[256];
	int fd;

	if (td_cli_socket(path, sizeof(path)))
		return -1;
	fd = td_socket_connect(path);
	if (fd < 0)
		td_cli_fail("no daemon at %s (%s): `tandem run` starts one", path, strerror(-fd));
	return fd;
}

/* 0 after END; TD_EXIT_USAGE after an ERROR, which was printed; -errno: the daemon was lost. */
static int exchange(int fd, const struct td_msg *request,
	void (*row)(const struct td_msg *msg, void *arg), void *arg)
{
	struct td_msg msg;
	int r = td_socket_send(fd, request, NULL, 0);

	while (!r) {
		r = td_socket_recv(fd, &msg, NULL, 0);
		if (r == TD_PROTO_UNKNOWN) {
			r = 0;
			continue;
		}
		if (r || msg.type == TD_MSG_TYPE_end)
			break;
		if (msg.type == TD_MSG_TYPE_error)
			return td_cli_fail("%s%s", msg.error.text, msg.error.rest);
		if (row)
			row(&msg, arg);
		/* Nobody gets what is printed; main says so. */
		if (ferror(stdout))
			return 0;
	}
	return r;
}

int td_cli_ask(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg)
{
	int fd = td_cli_connect(), r;

	if (fd < 0)
		return TD_EXIT_USAGE;
	r = exchange(fd, request, row, arg);
	close(fd);
	return r < 0 ? td_cli_fail("the daemon did not answer: %s", strerror(-r)) : r;
}

int td_cli_ask_to_end(const struct td_msg *request)
{
	int fd = td_cli_connect(), r;

	if (fd < 0)
		return TD_EXIT_USAGE;
	r = exchange(fd, request, NULL, NULL);
	/* What else it has to say is of no interest. */
	for (struct td_msg msg; !r;)
		if (td_socket_recv(fd, &msg, NULL, 0) < 0)
			break;
	close(fd);
	return r < 0 ? td_cli_fail("the daemon did not answer: %s", strerror(-r)) : r;
}

int td_cli_ask_or_start(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg)
{
	char path[256];
	int r = 0;

	if (td_cli_socket(path, sizeof(path)))
		return TD_EXIT_USAGE;
	for (int attempt = 0; attempt < ASK_TIMES; attempt++) {
		int fd = td_socket_connect(path);

		r = fd < 0 ? fd : exchange(fd, request, row, arg);
		if (fd >= 0)
			close(fd);
		if (r >= 0)
			return r;
		if (td_cli_ensure_daemon())
			return TD_EXIT_USAGE;
	}
	return td_cli_fail("the daemon did not answer: %s", strerror(-r));
}

int td_cli_json_option(int argc, char **argv, bool *ret_json)
{
	int i = 1;

	*ret_json = false;
	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--json")) {
			td_cli_fail("\"%.64s\" is not an option of %s: see tandem --help", argv[i],
				argv[0]);
			return -1;
		}
		*ret_json = true;
	}
	return i;
}

void td_json_begin(struct td_json *json, FILE *out)
{
	*json = (struct td_json){.out = out};
	fputc('[', out);
}

void td_json_row(struct td_json *json)
{
	fputs(json->rows++ ? ",\n {" : "\n {", json->out);
	json->fields = 0;
}

static void key(struct td_json *json, const char *name)
{
	fprintf(json->out, "%s\"%s\": ", json->fields++ ? ", " : "", name);
}

void td_json_str(struct td_json *json, const char *name, const char *value)
{
	key(json, name);
	fputc('"', json->out);
	for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(json->out, "\\%c", *p);
		else if (*p < 0x20)
			fprintf(json->out, "\\u%04x", *p);
		else
			fputc(*p, json->out);
	}
	fputc('"', json->out);
}

void td_json_u64(struct td_json *json, const char *name, uint64_t value)
{
	key(json, name);
	fprintf(json->out, "%llu", (unsigned long long)value);
}

void td_json_end_row(struct td_json *json)
{
	fputc('}', json->out);
	td_output_flush();
}

void td_json_end(struct td_json *json)
{
	fputs(json->rows ? "\n]\n" : "]\n", json->out);
}

char *td_cli_find(char *buf, size_t len, const char *env, const char *const *candidates)
{
	const char *given = getenv(env);
	char self[PATH_MAX], joined[2 * PATH_MAX], resolved[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (given && *given)
		return snprintf(buf, len, "%s", given) < (int)len ? buf : NULL;
	if (n < 0)
		return NULL;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (; *candidates; candidates++) {
		snprintf(joined, sizeof(joined), "%s/%s", self, *candidates);
		if (realpath(joined, resolved) && strlen(resolved) < len)
			return strcpy(buf, resolved);
	}
	return NULL;
}
