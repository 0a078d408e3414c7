/*
 * Implements vprintf. The format and its arguments are in the kernel's memory, each argument
 * aligned to its size; floats come as doubles. Each conversion is passed to the C library by
 * itself, after a check that CUDA has it: %[flags][width][.precision][size]type.
 */
#include <stdio.h>

#include "ptx/vm/memory.h"
#include "ptx/vm/ops.h"
#include "ptx/vm/sched.h"

#define MAX_FORMAT     2048u
#define MAX_TEXT       8192u
#define MAX_CONVERSION 40u

struct printer {
	struct thread *t;
	const struct insn *i;
	uint64_t arguments; /* the address of the next argument */
	char text[MAX_TEXT];
	size_t len;
	bool failed; /* the run has ended */
};

static uint64_t read_memory(struct printer *p, uint64_t address, uint32_t bytes)
{
	const void *from =
		p->failed ? NULL
			  : resolve_space(p->t, p->i, SPACE_GENERIC, address, bytes, SG_PTX_LOAD);
	uint64_t value = 0;

	if (from)
		memcpy(&value, from, bytes);
	else
		p->failed = true;
	return value;
}

static uint64_t next_argument(struct printer *p, uint32_t bytes)
{
	uint64_t at = (p->arguments + bytes - 1) & ~(uint64_t)(bytes - 1);

	p->arguments = at + bytes;
	return read_memory(p, at, bytes);
}

static void put(struct printer *p, const char *text, size_t len)
{
	if (len > sizeof(p->text) - p->len)
		len = sizeof(p->text) - p->len;
	memcpy(p->text + p->len, text, len);
	p->len += len;
}

/* Reads a string. Returns false if it does not end within `size` bytes. */
static bool read_string(struct printer *p, uint64_t address, char *ret, size_t size)
{
	for (size_t n = 0; n < size && !p->failed; n++) {
		ret[n] = (char)read_memory(p, address + n, 1);
		if (!ret[n])
			return true;
	}
	ret[size - 1] = 0;
	return false;
}

/* The format comes from the kernel; conversion() has let through nothing but what fits value. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_converted(struct printer *p, const char *format, char type)
{
	char text[1024], string[MAX_FORMAT];
	uint64_t value;
	int len;

	if (type == 's') {
		read_string(p, next_argument(p, 8), string, sizeof(string));
		len = p->failed ? 0 : snprintf(text, sizeof(text), format, string);
	} else if (strchr("aAeEfFgG", type)) {
		len = snprintf(text, sizeof(text), format, sg_ptx_f64(next_argument(p, 8)));
	} else if (type == 'p') {
		len = snprintf(text, sizeof(text), format, (void *)(uintptr_t)next_argument(p, 8));
	} else if (strstr(format, "ll")) {
		len = snprintf(text, sizeof(text), format, (long long)next_argument(p, 8));
	} else {
		value = next_argument(p, 4);
		len = snprintf(text, sizeof(text), format, (int)value);
	}
	if (len > 0)
		put(p, text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
}
#pragma GCC diagnostic pop

/* Appends the leading characters of `from` that are in `set`. Returns their number. */
static size_t take_of(const char *from, const char *set, char *format)
{
	size_t n = strspn(from, set);

	strncat(format, from, n);
	return n;
}

/*
 * Handles the text after a '%'. Returns the characters used, 0 where it is no conversion of CUDA's.
 */
static size_t convert(struct printer *p, const char *from)
{
	char format[MAX_CONVERSION + 8] = "%";
	size_t n = strspn(from, "-+ #0123456789.hl");
	char type = from[n];
	const char *size = from;

	if (!type || !strchr("cdiouxXpaAeEfFgGs", type) || n > MAX_CONVERSION)
		return 0;
	size += take_of(size, "-+ #0", format);
	size += take_of(size, "0123456789", format);
	if (*size == '.')
		size += take_of(size, ".0123456789", format);
	if (strchr("diouxX", type)) {
		if (*size == 'l') /* 64 bits on the GPU's Linux too */
			strcat(format, "ll");
		else if (*size == 'h')
			strcat(format, size[1] == 'h' ? "hh" : "h");
	}
	size += strspn(size, "hl");
	if (size != from + n)
		return 0;
	strncat(format, &type, 1);
	put_converted(p, format, type);
	return n + 1;
}

static void print_all(struct printer *p, const char *format)
{
	while (*format && !p->failed) {
		size_t plain = strcspn(format, "%"), used;

		put(p, format, plain);
		format += plain;
		if (!*format)
			return;
		format++;
		used = convert(p, format);
		if (!used)
			put(p, "%", 1);
		format += used ? used : *format == '%';
	}
}

const struct insn *sg_ptx_print(struct thread *t, const struct insn *i)
{
	const struct sg_ptx_output *output = &t->run->launch->output;
	const struct call *call = i->imm.call;
	uint8_t *local = t->context->local + t->local_at;
	struct printer p = {.t = t, .i = i};
	int32_t result = -1;
	char format[MAX_FORMAT];
	uint64_t at;

	if (output->write) {
		memcpy(&at, local + call->copies[1].at, 8);
		memcpy(&p.arguments, local + call->copies[2].at, 8);
		read_string(&p, at, format, sizeof(format));
		print_all(&p, format);
		if (p.failed)
			return NULL;
		output->write(output->arg, p.text, p.len);
		result = (int32_t)p.len;
	}
	memcpy(local + call->copies[0].at, &result, sizeof(result));
	return i + 1;
}
