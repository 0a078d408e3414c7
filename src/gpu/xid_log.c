/* Reads Xids from the kernel's log; see xid_log.h. */
#include "gpu/xid_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Most records per call, so that a log which grows faster than it is read does not hold us up. */
#define READS_MAX 256

/* Reads a number and moves *text behind it. Returns false if there is none, or it is too large. */
static bool parse_number(const char **text, uint32_t base, uint32_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	uint64_t value = 0;
	size_t n;

	for (n = 0; **text; n++, (*text)++) {
		int c = **text >= 'A' && **text <= 'F' ? **text - 'A' + 'a' : **text;

		digit = strchr(digits, c);
		if (!digit || (uint32_t)(digit - digits) >= base)
			break;
		value = value * base + (uint32_t)(digit - digits);
		if (value > INT_MAX)
			return false;
	}
	*ret = (uint32_t)value;
	return n > 0;
}

static bool skip(const char **text, const char *what)
{
	size_t len = strlen(what);

	if (strncmp(*text, what, len) != 0)
		return false;
	*text += len;
	return true;
}

bool td_xid_log_parse(const char *line, struct td_xid_row *ret)
{
	const char *at = strchr(line, ';');
	struct td_xid_row row = {0};
	uint32_t part, pid;

	/* The text has to be at the beginning: further on it could be part of a program's name. */
	if (!at++ || !skip(&at, "NVRM: Xid (PCI:") || !parse_number(&at, 16, &row.gpu.domain) ||
		!skip(&at, ":") || !parse_number(&at, 16, &row.gpu.bus) || !skip(&at, ":") ||
		!parse_number(&at, 16, &row.gpu.device))
		return false;
	if (skip(&at, ".") && !parse_number(&at, 16, &part))
		return false;
	if (!skip(&at, "): ") || !parse_number(&at, 10, &row.xid) || !row.xid)
		return false;
	if (skip(&at, ", pid=") && parse_number(&at, 10, &pid))
		row.pid = (int)pid;
	*ret = row;
	return true;
}

void td_xid_log_open(struct td_xid_log *log, const char *path)
{
	log->len = 0;
	log->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (log->fd >= 0)
		(void)lseek(log->fd, 0, SEEK_END);
}

/* Reads more of the log. Returns false if there is nothing to read now. */
static bool fill(struct td_xid_log *log)
{
	ssize_t n;

	/* A record that fills the buffer is not valid, so it is dropped. */
	if (log->len == sizeof(log->text) - 1)
		log->len = 0;
	n = read(log->fd, log->text + log->len, sizeof(log->text) - 1 - log->len);
	if (n > 0)
		log->len += (size_t)n;
	/* EPIPE: the next records were overwritten, and reading goes on behind them. */
	return n > 0 || (n < 0 && errno == EPIPE);
}

/* Takes a complete line from the buffer. Returns false if there is none yet. */
static bool take_line(struct td_xid_log *log, struct td_xid_row *ret, bool *ret_good)
{
	char *end = memchr(log->text, '\n', log->len);
	size_t len;

	if (!end)
		return false;
	*end = 0;
	len = (size_t)(end + 1 - log->text);
	*ret_good = td_xid_log_parse(log->text, ret);
	log->len -= len;
	memmove(log->text, end + 1, log->len);
	return true;
}

bool td_xid_log_take(struct td_xid_log *log, struct td_xid_row *ret)
{
	bool good;

	if (log->fd < 0)
		return false;
	for (unsigned reads = 0; reads < READS_MAX; reads++) {
		while (take_line(log, ret, &good))
			if (good)
				return true;
		if (!fill(log))
			return false;
	}
	return false;
}

void td_xid_log_close(struct td_xid_log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
}
