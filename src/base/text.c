/* Implements text.h. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"

#define FIRST_ROOM 1024

void td_text_deinit(struct td_text *text)
{
	free(text->text);
	memset(text, 0, sizeof(*text));
}

void td_text_clear(struct td_text *text)
{
	text->length = 0;
	text->failed = false;
	if (text->text)
		*text->text = 0;
}

/* Makes room for `more` bytes and a NUL. Returns false if memory is short. */
static bool make_room(struct td_text *text, size_t more)
{
	size_t room = text->room ? text->room : FIRST_ROOM;
	char *grown;

	if (text->failed)
		return false;
	while (room - text->length <= more)
		room *= 2;
	if (room == text->room)
		return true;
	grown = realloc(text->text, room);
	if (!grown) {
		text->failed = true;
		return false;
	}
	text->text = grown;
	text->room = room;
	return true;
}

void td_text_put(struct td_text *text, const char *bytes, size_t length)
{
	if (!make_room(text, length))
		return;
	memcpy(text->text + text->length, bytes, length);
	text->length += length;
	text->text[text->length] = 0;
}

void td_text_add(struct td_text *text, const char *format, ...)
{
	va_list args;
	int length;

	if (!make_room(text, 256))
		return;
	va_start(args, format);
	length = vsnprintf(text->text + text->length, text->room - text->length, format, args);
	va_end(args);
	if (length >= 0 && (size_t)length >= text->room - text->length) {
		if (!make_room(text, (size_t)length))
			return;
		va_start(args, format);
		length = vsnprintf(
			text->text + text->length, text->room - text->length, format, args);
		va_end(args);
	}
	if (length > 0)
		text->length += (size_t)length;
}

static void put_escaped(struct td_text *text, unsigned char c)
{
	char escaped[8];

	if (c == '"' || c == '\\')
		snprintf(escaped, sizeof(escaped), "\\%c", c);
	else
		snprintf(escaped, sizeof(escaped), "\\u%04x", c);
	td_text_put(text, escaped, strlen(escaped));
}

void td_text_add_json(struct td_text *text, const char *value)
{
	const unsigned char *at = (const unsigned char *)value, *plain = at;

	td_text_put(text, "\"", 1);
	while (*at) {
		uint32_t code;
		unsigned bytes = td_utf8_decode(at, &code);

		if (bytes && *at >= 0x20 && *at != '"' && *at != '\\') {
			at += bytes;
			continue;
		}
		td_text_put(text, (const char *)plain, (size_t)(at - plain));
		if (bytes)
			put_escaped(text, *at);
		else
			td_text_put(text, "?", 1);
		plain = ++at;
	}
	td_text_put(text, (const char *)plain, (size_t)(at - plain));
	td_text_put(text, "\"", 1);
}

int td_file_read(const char *path, char *ret, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	ssize_t n = fd < 0 ? -1 : read(fd, ret, len - 1);

	r = n < 0 ? -errno : 0;
	ret[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return r;
}
