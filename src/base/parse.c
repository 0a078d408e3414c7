/*
 * Parses values that people type. A number is read as digits with an optional fraction, then a unit
 * from the table of its kind. strtod is not used, because it depends on the locale: it would accept
 * "1,5" in some places, and "0x1p3" and "nan" in all.
 */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/time.h"

#define PPM           1000000u
#define SLACK_MIN_PPM 1000
#define DUTY_MIN_PPM  10000u
/* A share is checked against a whole of this many bytes. Any number would do. */
#define ANY_WHOLE (1ull << 40)

struct unit {
	const char *name;
	uint64_t factor;
};

/* The value is whole + fraction / 10^9, such as a byte in a GiB or an ns in a second. */
struct number {
	uint64_t whole, fraction;
	const char *rest;
};

static int parse_number(const char *text, struct number *ret)
{
	struct number n = {0};
	const char *p = text;
	uint64_t scale = 1000000000;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		if (__builtin_mul_overflow(n.whole, 10u, &n.whole) ||
			__builtin_add_overflow(n.whole, (uint64_t)(*p - '0'), &n.whole))
			return -ERANGE;
	}
	if (*p == '.') {
		p++;
		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		for (; isdigit((unsigned char)*p); p++) {
			scale /= 10;
			n.fraction += scale * (uint64_t)(*p - '0');
		}
	}
	n.rest = p;
	*ret = n;
	return 0;
}

static int scale_number(const struct number *n, uint64_t factor, uint64_t *ret)
{
	unsigned __int128 value = (unsigned __int128)n->whole * factor;

	value += (unsigned __int128)n->fraction * factor / 1000000000u;
	if (value > UINT64_MAX)
		return -ERANGE;
	*ret = (uint64_t)value;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcasecmp(units->name, name))
			return units;
	return NULL;
}

int td_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct td_err *err)
{
	struct number n;
	char expected[80];
	int r = parse_number(text, &n);

	snprintf(expected, sizeof(expected), "a whole number from %llu to %llu",
		(unsigned long long)min, (unsigned long long)max);
	if (!r && (*n.rest || strchr(text, '.')))
		r = -EINVAL;
	if (!r && (n.whole < min || n.whole > max))
		r = -ERANGE;
	if (r)
		return td_err_expected(err, r, text, expected);
	*ret = n.whole;
	return 0;
}

static int read_size(const char *text, uint64_t whole_bytes, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{"", 1},
		{"b", 1},
		{"k", 1ull << 10},
		{"ki", 1ull << 10},
		{"kb", 1ull << 10},
		{"kib", 1ull << 10},
		{"m", 1ull << 20},
		{"mi", 1ull << 20},
		{"mb", 1ull << 20},
		{"mib", 1ull << 20},
		{"g", 1ull << 30},
		{"gi", 1ull << 30},
		{"gb", 1ull << 30},
		{"gib", 1ull << 30},
		{"t", 1ull << 40},
		{"ti", 1ull << 40},
		{"tb", 1ull << 40},
		{"tib", 1ull << 40},
		{NULL, 0},
	};
	const struct unit *unit;
	struct number n;
	uint64_t bytes;
	int r = parse_number(text, &n);

	if (r)
		return r;
	if (whole_bytes && !strcmp(n.rest, "%")) {
		unsigned __int128 percent = (unsigned __int128)n.whole * 1000000000u + n.fraction;

		if (percent > (unsigned __int128)100 * 1000000000u)
			return -ERANGE;
		*ret_bytes = (uint64_t)(percent * whole_bytes / 100u / 1000000000u);
		return 0;
	}
	unit = find_unit(units, n.rest);
	r = unit ? scale_number(&n, unit->factor, &bytes) : -EINVAL;
	if (!r)
		*ret_bytes = bytes;
	return r;
}

int td_parse_size(const char *text, uint64_t whole_bytes, uint64_t *ret_bytes, struct td_err *err)
{
	int r = read_size(text, whole_bytes, ret_bytes);

	if (!r)
		return 0;
	return td_err_expected(err, r, text,
		whole_bytes ? "a size below 16777216Ti such as 512m or 8Gi, or a share from 0% to "
			      "100% such as 50%"
			    : "a size below 16777216Ti such as 512m or 8Gi");
}

int td_parse_gpus(const char *text, uint64_t most, uint64_t *ret_ppm, struct td_err *err)
{
	struct number n;
	char expected[80];
	uint64_t ppm = 0;
	int r = parse_number(text, &n);

	snprintf(expected, sizeof(expected), "a number of GPUs from 0 to %llu such as 1.5",
		(unsigned long long)most);
	if (!r && *n.rest)
		r = -EINVAL;
	if (!r)
		r = scale_number(&n, PPM, &ppm);
	if (!r && ppm > most * PPM)
		r = -ERANGE;
	if (r)
		return td_err_expected(err, r, text, expected);
	*ret_ppm = ppm;
	return 0;
}

int td_parse_duration(const char *text, uint64_t *ret_ns, struct td_err *err)
{
	static const struct unit units[] = {
		{"", TD_NS_PER_S},
		{"s", TD_NS_PER_S},
		{"ms", TD_NS_PER_MS},
		{"us", TD_NS_PER_US},
		{"ns", 1},
		{"m", 60 * TD_NS_PER_S},
		{"min", 60 * TD_NS_PER_S},
		{"h", 3600 * TD_NS_PER_S},
		{NULL, 0},
	};
	const char *expected = "a time (a number alone is seconds) from 0s to 5124095h such "
			       "as 30s, 250ms or 2m";
	const struct unit *unit;
	struct number n;
	uint64_t ns;
	int r = parse_number(text, &n);

	if (!r) {
		unit = find_unit(units, n.rest);
		r = unit ? scale_number(&n, unit->factor, &ns) : -EINVAL;
	}
	if (r)
		return td_err_expected(err, r, text, expected);
	*ret_ns = ns;
	return 0;
}

static int read_ratio(const char *text, uint32_t *ret_ppm)
{
	struct number n;
	uint64_t ppm = 0;
	int r = parse_number(text, &n);

	if (!r && !strcmp(n.rest, "%"))
		r = scale_number(&n, PPM / 100, &ppm);
	else if (!r && !*n.rest)
		r = scale_number(&n, PPM, &ppm);
	else if (!r)
		r = -EINVAL;
	if (!r && ppm > PPM)
		r = -ERANGE;
	if (!r)
		*ret_ppm = (uint32_t)ppm;
	return r;
}

int td_parse_ratio(const char *text, uint32_t *ret_ppm, struct td_err *err)
{
	int r = read_ratio(text, ret_ppm);

	return r ? td_err_expected(err, r, text, "a share from 0% to 100% such as 10% or 0.1") : 0;
}

int td_parse_limit(const char *text, struct td_err *err)
{
	uint64_t bytes;
	int r = read_size(text, ANY_WHOLE, &bytes);

	if (!r && (!bytes || strlen(text) >= TD_LIMIT_TEXT))
		r = -ERANGE;
	return r ? td_err_expected(err, r, text, TD_EXPECTED_LIMIT) : 0;
}

static int parse_share(const char *text, uint32_t least_ppm, const char *expected,
	uint32_t *ret_ppm, struct td_err *err)
{
	uint32_t ppm = 0;
	int r = read_ratio(text, &ppm);

	if (!r && ppm < least_ppm)
		r = -ERANGE;
	if (r)
		return td_err_expected(err, r, text, expected);
	*ret_ppm = ppm;
	return 0;
}

int td_parse_duty(const char *text, uint32_t *ret_ppm, struct td_err *err)
{
	return parse_share(text, DUTY_MIN_PPM, TD_EXPECTED_DUTY, ret_ppm, err);
}

int td_parse_slack(const char *text, uint32_t *ret_ppm, struct td_err *err)
{
	return parse_share(text, SLACK_MIN_PPM, TD_EXPECTED_SLACK, ret_ppm, err);
}

int td_parse_bool(const char *text, bool *ret, struct td_err *err)
{
	static const struct {
		const char *name;
		bool value;
	} words[] = {{"on", true}, {"off", false}, {"yes", true}, {"no", false}, {"true", true},
		{"false", false}, {"1", true}, {"0", false}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcasecmp(words[i].name, text)) {
			*ret = words[i].value;
			return 0;
		}
	}
	return td_err_expected(err, -EINVAL, text, "on or off");
}

char *td_format_size(char *buf, unsigned long len, uint64_t bytes)
{
	static const char *const suffix[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t i = 0;

	while (value >= 1024 && i < 6) {
		value /= 1024;
		i++;
	}
	snprintf(buf, len, i && value < 99.95 ? "%.1f %s" : "%.0f %s", value, suffix[i]);
	return buf;
}

char *td_format_duration(char *buf, unsigned long len, uint64_t ns)
{
	if (ns >= TD_NS_PER_S)
		snprintf(buf, len, "%.2f s", (double)ns / 1e9);
	else if (ns >= TD_NS_PER_MS)
		snprintf(buf, len, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(buf, len, "%.0f us", (double)ns / 1e3);
	return buf;
}

unsigned td_utf8_decode(const unsigned char *text, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned bytes = text[0] < 0x80   ? 1
			 : text[0] < 0xc0 ? 0
			 : text[0] < 0xe0 ? 2
			 : text[0] < 0xf0 ? 3
			 : text[0] < 0xf8 ? 4
					  : 0;
	uint32_t code = bytes < 2 ? text[0] : text[0] & (0x7fu >> bytes);

	for (unsigned i = 1; i < bytes; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	*ret_code = code;
	return code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0
											   : bytes;
}

/*
 * Tells whether a terminal could act on the character: controls (C0, DEL, C1), line separators, and
 * marks that change the direction of writing.
 */
static bool is_command(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

char *td_printable(char *text)
{
	for (char *c = text; *c;) {
		uint32_t code = 0;
		unsigned bytes = td_utf8_decode((const unsigned char *)c, &code);

		if (!bytes || is_command(code))
			memset(c, '?', bytes ? bytes : 1);
		c += bytes ? bytes : 1;
	}
	return text;
}
