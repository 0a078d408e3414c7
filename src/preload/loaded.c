/*
 * Reads /proc/self/maps; see loaded.h. Lines are `from-to perms offset device inode      path`; only the path has slashes, and no newline
 * is in one (the kernel writes \012). What was deleted since has " (deleted)" behind it.
 */
#include "preload/loaded.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_BYTES 64
#define PERMS          1 /* the field, from 0 */
#define PERMS_EXECUTE  2 /* the place in it */

/* One line, as far as it has come. */
struct line {
	char name[NAME_MAX_BYTES]; /* behind the last slash */
	size_t name_len;
	unsigned field, at;
	bool is_path, executable;
};

static void take(struct line *line, char c)
{
	if (c == '/') {
		line->is_path = true;
		line->name_len = 0;
	} else if (line->is_path) {
		if (line->name_len + 1 < sizeof(line->name))
			line->name[line->name_len++] = c;
	} else if (c == ' ') {
		line->field++;
		line->at = 0;
	} else {
		if (line->field == PERMS && line->at == PERMS_EXECUTE)
			line->executable = c == 'x';
		line->at++;
	}
}

static bool is_found(struct line *line, bool (*is)(const char *name))
{
	static const char deleted[] = " (deleted)";
	size_t mark = sizeof(deleted) - 1;

	line->name[line->name_len] = '\0';
	if (line->name_len > mark && !strcmp(line->name + line->name_len - mark, deleted))
		line->name[line->name_len - mark] = '\0';
	return line->is_path && line->executable && is(line->name);
}

static bool find(int fd, bool (*is)(const char *name), struct line *line)
{
	char buffer[4096];
	ssize_t n;

	do {
		n = read(fd, buffer, sizeof(buffer));
		for (ssize_t i = 0; i < n; i++) {
			if (buffer[i] != '\n') {
				take(line, buffer[i]);
				continue;
			}
			if (is_found(line, is))
				return true;
			*line = (struct line){0};
		}
	} while (n > 0 || (n < 0 && errno == EINTR));
	return false;
}

bool td_loaded_find(bool (*is)(const char *name), char *ret, size_t len)
{
	struct line line = {0};
	int saved = errno, fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool found = fd >= 0 && find(fd, is, &line);
	size_t n = strnlen(line.name, len - 1);

	if (fd >= 0)
		close(fd);
	if (found) {
		memcpy(ret, line.name, n);
		ret[n] = '\0';
	}
	errno = saved;
	return found;
}
